/* banned - calls that must not compile; gcc is the guard, clang's headers define some inline. */
#ifndef NS_BASE_BANNED_H
#define NS_BASE_BANNED_H

#if defined(__GNUC__) && !defined(__clang__)
#define BANNED(instead) __attribute__((deprecated(instead)))
char *strcpy(char *, const char *) BANNED("use buf_add");
char *strcat(char *, const char *) BANNED("use buf_add");
int sprintf(char *, const char *, ...) BANNED("use snprintf or buf_printf");
int atoi(const char *) BANNED("use parse_u64, which can fail");
long atol(const char *) BANNED("use parse_i64, which can fail");
double atof(const char *) BANNED("use parse_f64, which can fail");
char *strtok(char *, const char *) BANNED("use str_cut");
int rand(void) BANNED("use rng, which is seeded and replayable");
#endif

#endif
