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

static void print_option_words(const n2ce_option *table) {
    for (const n2ce_option *row = table; row->name; row++) printf("--%s ", row->name);
}

/* Words that may follow an option that takes some of a list. */
static void print_bash_choices(const n2ce_option *table) {
    for (const n2ce_option *row = table; row->name; row++) {
        if (row->type == N2CE_OPTION_PATH)
            printf("        --%s|-%c) COMPREPLY=($(compgen -d -- \"$word\")); return ;;\n",
                   row->name, row->letter);
        if (!row->choices) continue;
        printf("        --%s) COMPREPLY=($(compgen -W \"", row->name);
        for (const char *c = row->choices; *c; c++) putchar(*c == '|' ? ' ' : *c);
        printf("\" -- \"$word\")); return ;;\n");
    }
}

static void print_bash_task(const n2ce_task *task) {
    printf("    \"%s \"*)\n        case \"$before\" in\n", n2ce_task_name(task));
    print_bash_choices(n2ce_task_options(task));
    print_bash_choices(common_options);
    printf("        esac\n        words=\"");
    print_option_words(n2ce_task_options(task));
    print_option_words(common_options);
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

static void print_bash(void) {
    printf("# bash completion for n2ce; put into ~/.bashrc:  source <(n2ce completion bash)\n"
           "_n2ce() {\n"
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

static void print_zsh_options(const n2ce_option *table) {
    for (const n2ce_option *row = table; row->name; row++) {
        printf("            '--%s[", row->name);
        print_zsh_text(row->help);
        printf("]");
        if (row->type == N2CE_OPTION_PATH)
            printf(":folder:_files -/");
        else if (row->choices) {
            printf(":%s:(", row->value ? row->value : row->name);
            for (const char *c = row->choices; *c; c++) putchar(*c == '|' ? ' ' : *c);
            printf(")");
        } else if (row->type != N2CE_OPTION_FLAG)
            printf(":%s:", row->value);
        printf("' \\\n");
    }
}

static void print_zsh_task(const n2ce_task *task) {
    printf("        '%s'*)\n            _arguments \\\n", n2ce_task_name(task));
    print_zsh_options(n2ce_task_options(task));
    print_zsh_options(common_options);
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
