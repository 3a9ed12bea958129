/*
 * Wordcount is a skill in C without any SDK: under the ABI command/1 a module
 * is a program that reads the call's arguments, a JSON object, from stdin and
 * writes its result to stdout (docs/abi.md). The host has checked the arguments
 * against the schema in skill.toml. Whatever goes wrong is said on stderr, with
 * an exit status that is not 0.
 *
 * It reads no more JSON than it needs: the string "text".
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_all(size_t *len) {
    size_t cap = 1 << 16, n = 0, got;
    char *b = malloc(cap);
    while (b && (got = fread(b + n, 1, cap - 1 - n, stdin)) > 0) {
        n += got;
        if (n == cap - 1) {
            char *more = realloc(b, cap *= 2);
            if (!more) free(b);
            b = more;
        }
    }
    if (b) b[n] = 0;
    *len = n;
    return b;
}

/* skip_string returns the first character behind the string that starts at p,
 * or NULL if it does not end. */
static const char *skip_string(const char *p) {
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && p[1]) p++;
    return *p ? p + 1 : NULL;
}

/* member returns the value of key in the object at p, or NULL. */
static const char *member(const char *p, const char *key) {
    size_t n = strlen(key);
    int depth = 0;
    while (isspace((unsigned char)*p)) p++;
    if (*p != '{') return NULL;
    while (*p) {
        if (*p == '{' || *p == '[') depth++, p++;
        else if (*p == '}' || *p == ']') {
            if (--depth == 0) return NULL;
            p++;
        } else if (*p == '"') {
            const char *end = skip_string(p), *v = end;
            if (!end) return NULL;
            while (isspace((unsigned char)*v)) v++;
            if (depth == 1 && *v == ':' && (size_t)(end - p) == n + 2 && !memcmp(p + 1, key, n)) {
                for (v++; isspace((unsigned char)*v); v++) {}
                return v;
            }
            p = end;
        } else p++;
    }
    return NULL;
}

/* hex4 reads the four digits of \uXXXX, or returns -1. */
static int hex4(const char *p) {
    int v = 0;
    for (int i = 0; i < 4; i++) {
        if (!isxdigit((unsigned char)p[i])) return -1;
        v = v * 16 + (isdigit((unsigned char)p[i]) ? p[i] - '0' : (p[i] | 32) - 'a' + 10);
    }
    return v;
}

/* next reads one UTF-16 unit or UTF-8 byte of a JSON string and moves *p
 * behind it. */
static int next(const char **p) {
    const char *s = *p;
    *p = s + 1;
    if (*s != '\\') return (unsigned char)*s;
    *p = s + 2;
    switch (s[1]) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'u':
        if (hex4(s + 2) < 0) return ' ';
        *p = s + 6;
        return hex4(s + 2);
    }
    return (unsigned char)s[1];
}

int main(void) {
    size_t len;
    char *in = read_all(&len);
    const char *text = in ? member(in, "text") : NULL;
    if (!text || *text != '"' || !skip_string(text)) {
        fputs("\"text\" is not a string\n", stderr);
        return 1;
    }
    long words = 0, lines = 0, characters = 0;
    int inside = 0, open = 0;
    for (const char *p = text + 1; *p != '"';) {
        int c = next(&p);
        int space = c < 128 && isspace(c);
        if (c == '\n') lines++;
        open = c != '\n';
        /* Bytes within a character and second halves of a pair do not count. */
        if (!(c >= 0x80 && c < 0xc0) && !(c >= 0xdc00 && c < 0xe000)) characters++;
        if (!space && !inside) words++;
        inside = !space;
    }
    lines += open;
    printf("{\"words\":%ld,\"lines\":%ld,\"characters\":%ld}\n", words, lines, characters);
    return 0;
}
