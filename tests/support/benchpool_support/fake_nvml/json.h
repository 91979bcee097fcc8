/* A small reader of JSON: whole files into trees, for the fake driver. No escapes but \" and \\. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct node {
    char kind; /* one of { [ " n t f 0 (a number) */
    char *key, *text;
    double number;
    struct node *first, *next;
} node;

static const char *json_text(const char *at, char **out) {
    size_t room = 16, used = 0;
    *out = malloc(room);
    for (at++; *at && *at != '"'; at++) {
        if (*at == '\\' && at[1]) at++;
        if (used + 2 > room) *out = realloc(*out, room *= 2);
        (*out)[used++] = *at;
    }
    (*out)[used] = 0;
    return *at ? at + 1 : at;
}

static const char *json_skip(const char *at) {
    while (isspace((unsigned char)*at) || *at == ',' || *at == ':') at++;
    return at;
}

static const char *json_value(const char *at, node **out) {
    node *it = *out = calloc(1, sizeof *it);
    at = json_skip(at);
    it->kind = *at;
    if (*at == '{' || *at == '[') {
        char end = *at == '{' ? '}' : ']';
        node **last = &it->first;
        for (at = json_skip(at + 1); *at && *at != end; at = json_skip(at)) {
            char *key = NULL;
            if (end == '}') at = json_text(at, &key);
            at = json_value(at, last);
            (*last)->key = key;
            last = &(*last)->next;
        }
        return *at ? at + 1 : at;
    }
    if (*at == '"') return json_text(at, &it->text);
    if (isalpha((unsigned char)*at)) {
        while (isalpha((unsigned char)*at)) at++;
        return at;
    }
    char *end;
    it->kind = '0';
    it->number = strtod(at, &end);
    return end > at ? end : at + (*at != 0);
}

static void json_free(node *it) {
    while (it) {
        node *next = it->next;
        json_free(it->first);
        free(it->key);
        free(it->text);
        free(it);
        it = next;
    }
}

/* A member of an object; NULL where it is not there, or null. */
static node *json_get(node *of, const char *key) {
    for (node *it = of ? of->first : NULL; it; it = it->next)
        if (it->key && !strcmp(it->key, key)) return it->kind == 'n' ? NULL : it;
    return NULL;
}

static double json_number(node *of, const char *key, double otherwise) {
    node *it = json_get(of, key);
    return it && it->kind == '0' ? it->number : otherwise;
}

static int json_count(node *list) {
    int count = 0;
    for (node *it = list ? list->first : NULL; it; it = it->next) count++;
    return count;
}

static node *json_at(node *list, int index) {
    node *it = list ? list->first : NULL;
    while (it && index--) it = it->next;
    return it;
}
