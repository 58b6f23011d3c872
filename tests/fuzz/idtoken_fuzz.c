/* Any text as an ID token: nobody but the one whose tokens were signed is let in.  After a line feed
 * may stand keys, which then are the input's own.  The private keys are thrown away. */
#include <sodium.h>

#include "signin/idtoken.h"
#include "tests/fuzz/target.h"

static const char known_keys[] =
    "{\"keys\":[{\"kty\":\"EC\",\"x\":\"R5Z3CWhKojw2mDs2o1mJ9B0xQ20oZ-r6bGw34_sPIUI\""
    ",\"y\":\"UW7sR7Uxy4vuMBhtDxKdAI4JqbRoKN6sJNm3FOQoq1I\",\"crv\":\"P-256\",\"kid\""
    ":\"k1\"},{\"kty\":\"RSA\",\"n\":\"sLGK93c5s7T_1EOUudLGb1f_URb10sJuXn4QOdL9LGv9Tk"
    "k5IooTzwbiR_4KbV9nXIG-4tJSmfbzULIVYMja7N1MoyRFqQ7Ft7tFODt-pBVYe_NSj66QV0MpM_L0gC"
    "nPEUrmmrkX7RpU5qC5NPyTqhXoe9xd5NEiJEd7xBbtiTZRs6aGqwMHFMHRqLixeP9G3-o6hydR_1CdpP"
    "QODkuCBqThxpaYCffhLHvYzEVSceaOr1_2AtDXwFwPou_17dCfN4lvLhtR5xjFECFVkgYite9YuloFPK"
    "XrlfhtexJNNyZGdNtxQTgwws5XJM80uNDw2bwmoI595uPNjIIwlQdpkQ\",\"e\":\"AQAB\",\"kid\""
    ":\"k2\"}]}";

static const struct idtoken_want want = { .issuer = "https://id.example",
                                          .client_id = "nightshift",
                                          .nonce = "n-1",
                                          .now_s = 1800000000 };

FUZZ_TARGET(data, size)
{
    struct str token, keys, all = { (const char *)data, size };
    struct json_doc *claims = NULL;
    struct refusal r = { 0 };
    struct str sub = { 0 };
    bool own_keys = str_cut(all, '\n', &token, &keys);
    if (sodium_init() < 0)
        abort();
    int rc = idtoken_check(token, own_keys ? keys : str_of(known_keys), &want, &claims, &r);
    if ((rc == 0) != (claims != NULL) || (rc < 0 && !r.e.msg[0]))
        abort();
    if (rc == 0 && json_need_str(json_root(claims), "sub", 255, &sub, &r.e) < 0)
        abort();
    if (rc == 0 && !own_keys && !str_is(sub, "ana"))
        abort();
    json_free(claims);
    return 0;
}
