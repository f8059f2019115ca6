/* assets - the files of the page, as they are in this folder, inside the program. */
#include "tools/web/web.h"

/* name_bytes to name_end: the bytes of tools/web/FILE. */
#define ASSET(name, file)                                                                      \
    extern const char name##_bytes[], name##_end[];                                            \
    __asm__(".pushsection .rodata\n"                                                           \
            ".hidden " #name "_bytes\n.hidden " #name "_end\n"                                 \
            ".global " #name "_bytes\n" #name "_bytes:\n.incbin \"" WEB_FOLDER "/" file "\"\n" \
            ".global " #name "_end\n" #name "_end:\n.byte 0\n.popsection\n")

ASSET(web_script, "web.js");
ASSET(web_feed, "feed.js");
ASSET(web_style, "web.css");
ASSET(web_icon, "icon.svg");

const struct web_asset web_assets[] = {
    {"/web.js", "text/javascript; charset=utf-8", web_script_bytes, web_script_end},
    {"/feed.js", "text/javascript; charset=utf-8", web_feed_bytes, web_feed_end},
    {"/web.css", "text/css; charset=utf-8", web_style_bytes, web_style_end},
    {"/icon.svg", "image/svg+xml", web_icon_bytes, web_icon_end},
    {.path = NULL},
};
