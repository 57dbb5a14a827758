/* Completion scripts, written from the same tables as parser and help. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* The k-th word of a task's name, up to a space; its length in *n, 0 if none. */
static const char *name_word(const n2ce_task *task, int k, int *n) {
    const char *at = n2ce_task_name(task);
    for (; k > 0 && *at; k--) {
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    *n = (int)strcspn(at, " ");
    return at;
}

static int name_words(const n2ce_task *task) { return strchr(n2ce_task_name(task), ' ') ? 2 : 1; }

/* First words of the verbs, each once. */
static void print_first_words(void) {
    for (size_t i = 0; n2ce_task_at(i); i++) {
        int n, before = 0;
        const char *word = name_word(n2ce_task_at(i), 0, &n);
        for (size_t j = 0; j < i; j++) {
            int m;
            const char *other = name_word(n2ce_task_at(j), 0, &m);
            before |= m == n && strncmp(word, other, (size_t)n) == 0;
        }
        if (!before) printf("%.*s ", n, word);
    }
    for (const command *c = commands; c->name; c++) printf("%s ", c->name);
}

static void print_option_words(const n2ce_option *table, const n2ce_task *task) {
    for (const n2ce_option *row = table; row->name; row++)
        if (!is_hidden(task, row)) printf("--%s ", row->name);
}

/* A path is a folder where help calls it DIR. */
static bool is_folder(const n2ce_option *row) { return row->value && !strcmp(row->value, "DIR"); }

static void print_choices(const n2ce_option *row) {
    for (const char *c = row->choices; *c; c++) putchar(*c == '|' ? ' ' : *c);
}

/* ---- bash ---------------------------------------------------------------- */

/* One pattern of a "case" and what to offer there, for values of which something is known. */
static void print_bash_values(const char *pattern, const n2ce_option *row) {
    if (row->type == N2CE_OPTION_PATH)
        printf("        %s) _n2ce_paths %s \"$word\"; return ;;\n", pattern,
               is_folder(row) ? "-d" : "-f");
    else if (row->choices) {
        printf("        %s) COMPREPLY=($(compgen -W \"", pattern);
        print_choices(row);
        printf("\" -- \"$word\")); return ;;\n");
    }
}

/* What may follow an option. */
static void print_bash_options(const n2ce_option *table, const n2ce_task *task) {
    for (const n2ce_option *row = table; row->name; row++) {
        char pattern[80], alias[] = {'|', '-', row->letter, '\0'};
        snprintf(pattern, sizeof pattern, "--%s%s", row->name, row->letter ? alias : "");
        if (!is_hidden(task, row)) print_bash_values(pattern, row);
    }
}

/* Names and letters of the options that the next word belongs to. */
static void print_bash_with_value(const n2ce_option *table, const n2ce_task *task) {
    for (const n2ce_option *row = table; row->name; row++) {
        if (row->type == N2CE_OPTION_FLAG || is_hidden(task, row)) continue;
        printf("--%s ", row->name);
        if (row->letter) printf("-%c ", row->letter);
    }
}

/* What a bare word may be, by how many are there already. */
static void print_bash_operands(const n2ce_task *task) {
    const n2ce_option *own = n2ce_task_options(task), *row;
    if (!operand_at(task, 0)) return;
    printf("        [[ $word == -* ]] || case $(_n2ce_count %d \" ", name_words(task));
    print_bash_with_value(own, NULL);
    print_bash_with_value(common_options, task);
    printf("\") in\n");
    for (size_t k = 0; (row = operand_at(task, k)); k++) {
        char pattern[24];
        snprintf(pattern, sizeof pattern, "%zu", k);
        print_bash_values(pattern, row);
    }
    printf("        esac\n");
}

static void print_bash_task(const n2ce_task *task) {
    const n2ce_option *own = n2ce_task_options(task);
    printf("    \"%s \"*)\n        case \"$before\" in\n", n2ce_task_name(task));
    print_bash_options(own, NULL);
    print_bash_options(common_options, task);
    printf("        esac\n");
    print_bash_operands(task);
    printf("        words+=\" ");
    print_option_words(own, NULL);
    print_option_words(common_options, task);
    printf("\" ;;\n");
}

/* Second words are offered after "study", and after "help" and "man" the verbs. */
static void print_bash_groups(void) {
    for (size_t i = 0; n2ce_task_at(i); i++) {
        int n, m;
        const char *first = name_word(n2ce_task_at(i), 0, &n);
        const char *second = name_word(n2ce_task_at(i), 1, &m);
        if (m > 0) printf("    \"%.*s \") words+=\" %.*s\" ;;&\n", n, first, m, second);
    }
    printf("    \"help \"|\"man \") words=\"");
    print_first_words();
    printf("\" ;;\n    \"completion \") words=\"bash zsh\" ;;\n");
}

/* File names may have blanks; bash itself adds the quotes and the slash after a folder. The
 * "=" of --name=value is a word of its own to bash. */
static void print_bash_helpers(void) {
    printf("_n2ce_paths() {\n"
           "    compopt -o filenames 2>/dev/null\n"
           "    mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$2\")\n"
           "}\n"
           "# How many bare words are before the cursor, after a verb of $1 words; the options $2\n"
           "# take a value.\n"
           "_n2ce_count() {\n"
           "    local i n=0 options=yes\n"
           "    for ((i = 1 + $1; i < COMP_CWORD; i++)); do\n"
           "        case \"$options ${COMP_WORDS[i]}\" in\n"
           "        \"yes --\") options=no ;;\n"
           "        \"yes -\"?*)\n"
           "            if [[ ${COMP_WORDS[i+1]} == = ]]; then ((i += 2))\n"
           "            elif [[ $2 == *\" ${COMP_WORDS[i]} \"* ]]; then ((i++)); fi ;;\n"
           "        *) ((n++)) ;;\n"
           "        esac\n"
           "    done\n"
           "    echo $n\n"
           "}\n");
}

static void print_bash(void) {
    printf("# bash completion for n2ce; put into ~/.bashrc:  source <(n2ce completion bash)\n");
    print_bash_helpers();
    printf("_n2ce() {\n"
           "    local word=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
           "    local line=\"${COMP_WORDS[*]:1:COMP_CWORD-1} \" words=\"\"\n"
           "    [ \"$COMP_CWORD\" -eq 1 ] && line=\"\"\n"
           "    case \"$line\" in\n    \"\") words=\"");
    print_first_words();
    printf("\" ;;\n");
    print_bash_groups();
    for (int words = 2; words > 0; words--) /* "bench svgd" before "bench" */
        for (size_t i = 0; n2ce_task_at(i); i++)
            if (name_words(n2ce_task_at(i)) == words) print_bash_task(n2ce_task_at(i));
    printf("    esac\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "}\n"
           "complete -F _n2ce n2ce\n");
}

/* ---- zsh ----------------------------------------------------------------- */

/* zsh wants ' [ ] : escaped in descriptions. */
static void print_zsh_text(const char *text) {
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

/* ":what it is:what to offer". */
static void print_zsh_value(const n2ce_option *row) {
    printf(":%s:", row->value ? row->value : row->name);
    if (row->type == N2CE_OPTION_PATH)
        printf(is_folder(row) ? "_files -/" : "_files");
    else if (row->choices) {
        printf("(");
        print_choices(row);
        printf(")");
    }
}

static void print_zsh_options(const n2ce_option *table, const n2ce_task *task) {
    for (const n2ce_option *row = table; row->name; row++) {
        if (is_hidden(task, row)) continue;
        printf("            '--%s[", row->name);
        print_zsh_text(row->help);
        printf("]");
        if (row->type != N2CE_OPTION_FLAG) print_zsh_value(row);
        printf("' \\\n");
    }
}

/* The words of the verb are the first arguments. */
static void print_zsh_operands(const n2ce_task *task) {
    const n2ce_option *row;
    for (size_t k = 0; (row = operand_at(task, k)); k++) {
        printf("            '%zu", (size_t)name_words(task) + k + 1);
        print_zsh_value(row);
        printf("' \\\n");
    }
}

/* $verb is always two words: the blank keeps "fit" from being taken for "fitting". */
static void print_zsh_task(const n2ce_task *task) {
    printf("        '%s%s'*)\n            _arguments \\\n", n2ce_task_name(task),
           name_words(task) == 1 ? " " : "");
    print_zsh_options(n2ce_task_options(task), NULL);
    print_zsh_options(common_options, task);
    print_zsh_operands(task);
    printf("            '*:' ;;\n");
}

static void print_zsh(void) {
    printf("#compdef n2ce\n# zsh completion for n2ce; put into ~/.zshrc:  source <(n2ce completion "
           "zsh)\n"
           "_n2ce() {\n    local verb=\"${words[2]} ${words[3]}\"\n    case \"$verb\" in\n");
    for (int words = 2; words > 0; words--)
        for (size_t i = 0; n2ce_task_at(i); i++)
            if (name_words(n2ce_task_at(i)) == words) print_zsh_task(n2ce_task_at(i));
    for (size_t i = 0; n2ce_task_at(i); i++) {
        int n, m;
        const char *first = name_word(n2ce_task_at(i), 0, &n);
        const char *second = name_word(n2ce_task_at(i), 1, &m);
        if (m > 0) printf("        '%.*s '*) compadd %.*s ;;\n", n, first, m, second);
    }
    printf("        *) compadd ");
    print_first_words();
    printf(";;\n    esac\n}\ncompdef _n2ce n2ce\n");
}

int cmd_completion(int argc, char **argv) {
    if (argc == 1 && strcmp(argv[0], "bash") == 0)
        print_bash();
    else if (argc == 1 && strcmp(argv[0], "zsh") == 0)
        print_zsh();
    else {
        complain("completion for which shell? Try: n2ce completion bash, or zsh");
        return EXIT_USAGE;
    }
    return EXIT_OK;
}
