/* bench_plot - the answer of `muster bench` as a picture: an SVG, drawn by gnuplot. */
#include "tools/bench/bench.h"

#include "tools/render.h"
#include "tools/setup/setup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool plot_may_write(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];
    struct stat st;

    if (strlen(path) + sizeof "./" > PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (stat(path, &st) == 0) {
        errno = EISDIR;
        return !S_ISDIR(st.st_mode) && access(path, W_OK) == 0; /* which sets it, too */
    }
    snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
             slash == NULL ? "." : path);
    return access(folder, W_OK | X_OK) == 0;
}

int bench_plot_check(const char *path)
{
    char gnuplot[PATH_MAX];

    if (!plot_may_write(path))
        return tool_fail(TOOL_USAGE, "cannot write %s: %s; name another file with --plot", path,
                         strerror(errno));
    if (!setup_find("gnuplot", gnuplot))
        return tool_fail(TOOL_NO, "--plot needs gnuplot, which is not in PATH; install the package "
                                  "gnuplot-nox, or leave out --plot");
    return TOOL_DONE;
}

/* Bars side by side: what muster took and, where there is one, the limit. Words that come from
 * outside are in none of it: the file's name is the script's argument. */
static void plot_script(FILE *out, const struct bench_plan *plan, const struct bench_figures *f)
{
    fputs("set terminal svg size 760,420 dynamic background rgb 'white' font 'sans-serif,13'\n"
          "set output ARG1\n"
          "set style data histogram\n"
          "set style histogram clustered gap 1\n"
          "set style fill solid\n"
          "set boxwidth 0.9\n"
          "set border 3\n"
          "set xtics nomirror scale 0\n"
          "set ytics nomirror\n"
          "set grid ytics lc rgb '#dddddd'\n"
          "set key above\n"
          "set ylabel 'ms'\n"
          "set xrange [-0.5:3.5]\n"
          "set yrange [0:*]\n"
          "set bmargin 3.5\n"
          "set offsets 0, 0, graph 0.15, 0\n"
          "set datafile missing '-'\n",
          out);
    fprintf(out, "set title 'muster bench: a preemption of %" PRId64 " rank%s of %s each'\n",
            plan->ranks, plan->ranks == 1 ? "" : "s", render_bytes(plan->size_bytes).text);
    fprintf(out,
            "$times << END\n"
            "\"all ranks agree\\non a step\" %.6f -\n"
            "\"they save\" %.6f %.6f\n"
            "\"notice until the\\nlast rank left\" %.6f -\n"
            "\"next launch joins\\nand restores\" %.6f %.6f\n"
            "END\n",
            f->agreement, f->save, f->plain_write, f->gone, f->restart, f->plain_read);
    fputs("plot $times using 2:xtic(1) title 'muster' lc rgb '#2f6db3', \\\n"
          "  '' using 3 title 'plain writes, plain reads' lc rgb '#c9a227', \\\n"
          "  '' using ($0-1./6):2:(sprintf('%.0f', $2)) with labels offset 0,0.6 notitle, \\\n"
          "  '' using ($0+1./6):3:(sprintf('%.0f', $3)) with labels offset 0,0.6 notitle\n",
          out);
}

int bench_plot_draw(const char *path, const char *script_path, const char *log_path,
                    const struct bench_plan *plan, const struct bench_figures *figures)
{
    FILE *script = fopen(script_path, "we");
    char gnuplot[PATH_MAX], file[PATH_MAX + 2];
    bool written;

    if (script == NULL)
        return tool_fail(TOOL_NO, "cannot write %s: %s", script_path, strerror(errno));
    plot_script(script, plan, figures);
    written = ferror(script) == 0;
    if (fclose(script) != 0 || !written)
        return tool_fail(TOOL_NO, "cannot write %s: %s", script_path, strerror(errno));
    /* gnuplot takes a name that begins with | for a command */
    snprintf(file, sizeof file, "%s%s", path[0] == '/' ? "" : "./", path);
    if (!setup_find("gnuplot", gnuplot) ||
        trial_wait(trial_start(log_path,
                               (const char *const[]){gnuplot, "-c", script_path, file, NULL})) != 0)
        return tool_fail(TOOL_NO, "gnuplot could not draw %s", path);
    return TOOL_DONE;
}
