#include "page.h"

#include <stdio.h>

/* Colours by role. Ten line colours that stay apart for the common kinds of
 * colour blindness, cn for references; paper is always light. */
static const char css_colours[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1d2228;--soft:#59636e;--rule:#d5dae0;"
    "--grid:#e8ebee;--code:#f5f6f8;--cn:#6e7781;"
    "--c0:#0c4a8a;--c1:#ad3607;--c2:#19977e;--c3:#8862c1;--c4:#f99722;"
    "--c5:#5a9fff;--c6:#704055;--c7:#b9753b;--c8:#3f0e6a;--c9:#cb9fac;"
    "--s0:#cfd8e3;--s1:#9fb6d3;--s2:#6f95c4;--s3:#3a6fa8;--s4:#0c3a70}\n"
    "@media screen and (prefers-color-scheme:dark){"
    ":root{--bg:#14181d;--fg:#e3e7eb;--soft:#9aa5b1;--rule:#3a424c;"
    "--grid:#272d35;--code:#1c2128;--cn:#8b96a2;"
    "--c0:#5487bd;--c1:#d55e28;--c2:#3cddb4;--c3:#b4a6ff;--c4:#ebbb30;"
    "--c5:#b8d1ff;--c6:#a85a78;--c7:#c4a15a;--c8:#6a5ac8;--c9:#fee8ea;"
    "--s0:#2b3440;--s1:#3a526e;--s2:#4d78a6;--s3:#74a5d8;--s4:#bfdcff}}\n";

static const char css_page[] =
    "*{box-sizing:border-box}\n"
    "body{margin:0;padding:2.5rem 1.25rem 3rem;background:var(--bg);color:var(--fg);"
    "font:1rem/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,"
    "sans-serif}\n"
    "main,body>footer{max-width:72rem;margin:0 auto}\n"
    "main{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,30rem),1fr));"
    "gap:1.25rem 2.5rem}\n"
    "main>*{grid-column:1/-1;min-width:0;margin:0}\n"
    "main>figure{grid-column:auto}\n"
    "h1{margin:0;font-size:1.75rem;line-height:1.2;font-weight:650;letter-spacing:-.01em}\n"
    "h2{padding-top:1.25rem;font-size:1.2rem;line-height:1.3;font-weight:650}\n"
    "header{padding-bottom:1.25rem;border-bottom:1px solid var(--rule)}\n"
    "header p{margin:.4rem 0 0;color:var(--soft)}\n"
    "main>p{max-width:44rem}\n"
    "figcaption,caption{color:var(--soft);font-size:.875rem;line-height:1.45;text-align:left}\n"
    "figcaption{margin-top:.35rem}\n"
    "caption{padding-bottom:.5rem}\n"
    "body>footer{margin-top:2.5rem;padding-top:1rem;border-top:1px solid var(--rule);"
    "color:var(--soft);font-size:.875rem}\n";

static const char css_blocks[] =
    ".n2-table{overflow-x:auto}\n"
    ".n2-sort{max-height:36rem;overflow:auto}.n2-sort th{cursor:pointer;position:sticky;top:0;"
    "background:var(--bg)}\n"
    "table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.35rem 1.5rem .35rem 0;text-align:right;white-space:nowrap;"
    "border-bottom:1px solid var(--grid)}\n"
    "th{color:var(--soft);font-weight:600;border-bottom-color:var(--rule)}\n"
    "th:first-child,td:first-child{text-align:left}\n"
    "th:last-child,td:last-child{padding-right:0}\n"
    "strong{font-weight:650}\n"
    ".n2-picture{max-width:100%;height:auto;image-rendering:pixelated;min-width:60%}\n"
    "pre{padding:.9rem 1rem;overflow-x:auto;background:var(--code);border-radius:6px;"
    "font:.85rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}\n"
    "code{font:inherit}\n"
    ".n2-numbers{display:flex;flex-wrap:wrap;gap:1rem 3.5rem}\n"
    ".n2-numbers p{margin:0;color:var(--soft);font-size:.875rem}\n"
    ".n2-numbers b{display:block;margin:.1rem 0;color:var(--fg);font-size:2.1rem;line-height:1.2;"
    "font-weight:650;font-variant-numeric:tabular-nums}\n"
    ".n2-numbers small{font-size:1rem;font-weight:400;color:var(--soft)}\n"
    ".n2-verdict{padding:.45rem .9rem;border-left:4px solid;font-weight:600}\n"
    ".n2-good{border-color:var(--c2)}.n2-bad{border-color:var(--c1)}\n"
    "dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.35rem 1.5rem}\n"
    "dt{color:var(--soft)}dd{margin:0}\n"
    "@media(max-width:32rem){dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}"
    "td:first-child{white-space:normal}th,td{padding-right:.8rem}}\n";

static const char css_plots[] =
    ".n2-plot{display:block;width:100%;height:auto;font-variant-numeric:tabular-nums}\n"
    ".n2-grid,.n2-axis,.n2-line,.n2-dot{fill:none}\n"
    ".n2-grid{stroke:var(--grid)}\n"
    ".n2-axis{stroke:var(--soft)}\n"
    ".n2-line{stroke:currentColor;stroke-width:1.8;stroke-linejoin:round;"
    "stroke-linecap:round}\n"
    ".n2-dash{stroke-dasharray:6 5;stroke-linecap:butt}\n"
    ".n2-dot{stroke:currentColor;stroke-width:6.5;stroke-linecap:round}\n"
    ".n2-small{stroke-width:4.5;stroke-opacity:.8}\n"
    ".n2-thin{fill:none;stroke:currentColor;stroke-width:1.1;stroke-opacity:.55}\n"
    ".n2-band{fill:currentColor;fill-opacity:.16}\n"
    ".n2-bar{fill:currentColor;fill-opacity:.75}\n"
    ".n2-tick,.n2-key{font-size:12px}\n"
    ".n2-tick{fill:var(--soft)}\n"
    ".n2-sup{font-size:9px}\n"
    ".n2-label{font-size:13px;fill:var(--fg)}\n"
    ".n2-key{fill:var(--fg)}\n"
    ".n2-title{font-size:15px;font-weight:600;fill:var(--fg)}\n"
    ".n2-cn{color:var(--cn)}\n";

static const char css_print[] =
    "@media print{body{padding:0;font-size:10pt}figure,table,pre{break-inside:avoid}"
    "h2{break-after:avoid}main{grid-template-columns:1fr 1fr}pre{white-space:pre-wrap}}\n";

static void add_style(n2_text *out) {
    n2_text_add(out, "<style>\n%s%s%s%s", css_colours, css_page, css_blocks, css_plots);
    for (int i = 0; i < N2_PLOT_COLOURS; i++) n2_text_add(out, ".n2-c%d{color:var(--c%d)}\n", i, i);
    for (int i = 0; i < N2_SVG_SHADES; i++) n2_text_add(out, ".n2-s%d{color:var(--s%d)}\n", i, i);
    n2_text_add(out, "%s</style>\n", css_print);
}

/* <tag>text</tag>, nothing for NULL. The tag may have attributes. */
static void add_element(n2_text *out, const char *tag, const char *s) {
    if (!s) return;
    n2_text_add(out, "<%s>", tag);
    n2_text_add_xml(out, s);
    n2_text_add(out, "</%s>\n", tag);
}

void n2_page_begin(n2_text *out, const char *title, const char *subtitle) {
    n2_text_add(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    add_element(out, "title", title ? title : "Report");
    add_style(out);
    n2_text_add(out, "</head>\n<body>\n<main>\n<header>\n");
    add_element(out, "h1", title);
    add_element(out, "p", subtitle);
    n2_text_add(out, "</header>\n");
}

void n2_page_end(n2_text *out, const char *footer) {
    n2_text_add(out, "</main>\n");
    add_element(out, "footer", footer);
    n2_text_add(out, "</body>\n</html>\n");
}

void n2_page_section(n2_text *out, const char *heading) { add_element(out, "h2", heading); }

static void add_formatted(n2_text *out, const char *tag, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (n < 0 || out->failed) return;
    char *plain = n2_alloc(out->ctx, (size_t)n + 1, 1);
    if (!plain) {
        out->failed = true;
        return;
    }
    vsnprintf(plain, (size_t)n + 1, format, args);
    add_element(out, tag, plain);
    n2_free(out->ctx, plain);
}

void n2_page_paragraph(n2_text *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_formatted(out, "p", format, args);
    va_end(args);
}

void n2_page_numbers(n2_text *out, const n2_page_number *numbers, size_t n) {
    n2_text_add(out, "<div class=\"n2-numbers\">\n");
    for (size_t i = 0; i < n; i++) {
        n2_text_add(out, "<p>");
        n2_text_add_xml(out, numbers[i].what);
        n2_text_add(out, " <b>");
        n2_text_add_xml(out, numbers[i].value);
        if (numbers[i].unit) {
            n2_text_add(out, " <small>");
            n2_text_add_xml(out, numbers[i].unit);
            n2_text_add(out, "</small>");
        }
        n2_text_add(out, "</b> ");
        if (numbers[i].note) n2_text_add_xml(out, numbers[i].note);
        n2_text_add(out, "</p>\n");
    }
    n2_text_add(out, "</div>\n");
}

void n2_page_verdict(n2_text *out, bool good, const char *text) {
    n2_text_add(out, "<p class=\"n2-verdict %s\">", good ? "n2-good" : "n2-bad");
    n2_text_add_xml(out, text);
    n2_text_add(out, "</p>\n");
}

void n2_page_facts_begin(n2_text *out) { n2_text_add(out, "<dl>\n"); }
void n2_page_facts_end(n2_text *out) { n2_text_add(out, "</dl>\n"); }

void n2_page_fact(n2_text *out, const char *name, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_element(out, "dt", name);
    add_formatted(out, "dd", format, args);
    va_end(args);
}

void n2_page_figure(n2_text *out, const n2_plot *plot, const char *caption) {
    n2_text_add(out, "<figure>\n");
    n2_plot_svg(out, plot);
    add_element(out, "figcaption", caption);
    n2_text_add(out, "</figure>\n");
}

void n2_page_parallel(n2_text *out, const n2_parallel *p, const char *caption) {
    n2_text_add(out, "<figure>\n");
    n2_parallel_svg(out, p);
    add_element(out, "figcaption", caption);
    n2_text_add(out, "</figure>\n");
}

void n2_page_bars(n2_text *out, const n2_bars *bars, const char *caption) {
    n2_text_add(out, "<figure>\n");
    n2_bars_svg(out, bars);
    add_element(out, "figcaption", caption);
    n2_text_add(out, "</figure>\n");
}

/* RFC 4648: three bytes as four characters, "=" where there are fewer. */
static void add_base64(n2_text *out, const unsigned char *bytes, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const unsigned a = bytes[i], b = i + 1 < n ? bytes[i + 1] : 0u;
        const unsigned c = i + 2 < n ? bytes[i + 2] : 0u, all = a << 16 | b << 8 | c;
        const char four[] = {digits[all >> 18], digits[all >> 12 & 63],
                             i + 1 < n ? digits[all >> 6 & 63] : '=',
                             i + 2 < n ? digits[all & 63] : '='};
        n2_text_add_raw(out, four, sizeof four);
    }
}

void n2_page_picture(n2_text *out, const void *png, size_t n, const char *alt,
                     const char *caption) {
    n2_text_add(out, "<figure>\n<img class=\"n2-picture\" alt=\"");
    n2_text_add_xml(out, alt);
    n2_text_add(out, "\" src=\"data:image/png;base64,");
    add_base64(out, png, n);
    n2_text_add(out, "\">\n");
    add_element(out, "figcaption", caption);
    n2_text_add(out, "</figure>\n");
}

static void add_cell(n2_text *out, const char *tag, const char *cell) {
    const char *s = cell ? cell : "";
    n2_text_add(out, "<%s>%s", tag, *s == '*' ? "<strong>" : "");
    n2_text_add_xml(out, *s == '*' ? s + 1 : s);
    n2_text_add(out, "%s</%s>", *s == '*' ? "</strong>" : "", tag);
}

static void add_table(n2_text *out, const char *const *cells, size_t n_rows, size_t n_columns,
                      const char *caption, const char *class) {
    n2_text_add(out, "<div class=\"%s\"><table>\n", class);
    add_element(out, "caption", caption);
    for (size_t i = 0; i < n_rows; i++) {
        n2_text_add(out, i == 0 ? "<thead><tr>" : i == 1 ? "<tbody>\n<tr>" : "<tr>");
        for (size_t j = 0; j < n_columns; j++)
            add_cell(out, i == 0 ? "th" : "td", cells[i * n_columns + j]);
        n2_text_add(out, i == 0 ? "</tr></thead>\n" : "</tr>\n");
    }
    n2_text_add(out, "%s</table></div>\n", n_rows > 1 ? "</tbody>" : "");
}

void n2_page_table(n2_text *out, const char *const *cells, size_t n_rows, size_t n_columns,
                   const char *caption) {
    add_table(out, cells, n_rows, n_columns, caption, "n2-table");
}

/* Numbers by size, texts by their letters; again for the other direction. Without scripts the table
 * is as it was. */
static const char sort_script[] =
    "<script>\n"
    "document.querySelectorAll('.n2-sort th').forEach(function(head){head.onclick=function(){\n"
    "var j=head.cellIndex,body=head.closest('table').tBodies[0],rows=Array.from(body.rows);\n"
    "var up=head.dataset.up=head.dataset.up==='1'?'0':'1',sign=up==='1'?1:-1;\n"
    "rows.sort(function(a,b){var p=a.cells[j].textContent,q=b.cells[j].textContent;\n"
    "var d=p-q;return sign*(isNaN(d)?p.localeCompare(q):d)});\n"
    "rows.forEach(function(r){body.appendChild(r)})}});\n"
    "</script>\n";

void n2_page_sortable(n2_text *out, const char *const *cells, size_t n_rows, size_t n_columns,
                      const char *caption) {
    add_table(out, cells, n_rows, n_columns, caption, "n2-table n2-sort");
    n2_text_add(out, "%s", sort_script);
}

void n2_page_code(n2_text *out, const char *code) {
    n2_text_add(out, "<pre><code>");
    n2_text_add_xml(out, code);
    n2_text_add(out, "</code></pre>\n");
}
