"""No sum of floats may depend on the version of Python.

From Python 3.12 on `sum` of floats is compensated, before it is not: the last bits differ, and with
them the bytes of every file that holds such a number. `math.fsum` is exact in all of them; NumPy's
sums do not depend on Python. So `sum` is for what is evidently whole: counts, lengths and truths.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "fabula"

WHOLE_CALLS = {"len", "int", "bool", "estimate_tokens", "any", "all", "isinstance", "startswith"}
WHOLE_BEGINNINGS = ("n_", "is_", "has_")
WHOLE_NAMES = {"n", "count", "file_size", "st_size", "nbytes"}
COUNTERS = {"counts", "missing"}

ALLOWED = {
    "continuation/corpus.py: sum((counts[word] for word in kept))",
    "continuation/corpus.py: sum((i[k] for i in infos))",
    "evals/rubrics.py: sum((reply.usage for reply in outputs if reply.usage), ModelUsage())",
    "feedback/advising.py: sum((cost.usage for cost in costs), start=Usage())",
    "feedback/characters.py: sum((other for _, other in rest))",
    "feedback/part.py: sum(advice.other_lines.values())",
    "judging/agreement.py: sum(value.values())", "judging/judges.py: sum(usages, Usage())",
    "judging/summary.py: sum(flips)", "linguistic/metrics.py: sum((a[part] for part in parts))",
    "linguistic/metrics.py: sum((b[part] for part in parts))",
    "linguistic/metrics.py: sum(is_known)", "linguistic/metrics.py: sum(nouns)",
    "linguistic/metrics.py: sum(verbs)", "novelty/quoting.py: sum(shared)",
    "reference/build.py: sum(batch.lengths)", "reference/build.py: sum(shard.lengths)",
    "reference/catalogue.py: sum((size for size in sizes if size is not None))",
    "reference/exclude.py: sum(covered)",
    "reference/files.py: sum((stamps[file][0] for file in files))",
    "reference/files.py: sum((stamps[file][0] for file in new))",
    "replicate/creativity_index.py: sum(cleared.values())",
    "replicate/tables.py: sum(row.values())",
    "review/reviewer.py: sum((e.usage for e in expected), start=Usage())",
    "stories/job.py: sum(sizes.values())",
    "stories/random_draw.py: sum((counts[k, x] - counts[k, y] - 1 for k, (x, y) in fields "
    "if x != y))",
    "stories/random_draw.py: sum((counts[pair] for pair in enumerate(cell)))",
    "studies/job.py: sum((forget(connection, id_, 'command line') for id_ in ids))",
    "studies/job.py: sum((remove(connection, id_, 'command line') for id_ in sorted(ids)))",
    "studies/units.py: sum((together[min(k, m), max(k, m)] for m in members))",
    "studies/units.py: sum(every)", "studies/units.py: sum(shares)",
    "style/lines.py: sum(n_pasts)", "style/lines.py: sum(n_pasts[beside])",
    "style/lines.py: sum(n_presents)", "style/lines.py: sum(n_presents[beside])",
    "text/grammar.py: sum((overlaps(word, marked) for word in words))",
    "text/parsing.py: sum((_is_word(token.text) for token in doc))",
    "text/sentences.py: sum(map(str.isalpha, part))", "text/sources.py: sum(sizes)",
    "text/speech.py: sum((closed and (not inside) and "
    "(reader.text[start:end].rstrip(marks)[-1:] in _SPEECH_ENDS or reader.is_told(start, "
    "end)) for (start, end, closed), inside in zip(pairs, within, strict=True)))",
}  # fmt: skip
"""Sums whose terms do not look whole but are, by file: flags, counts, lengths, milliseconds."""


def is_whole(node: ast.expr) -> bool:
    """Whether an expression is a whole number or a truth, by its form or the house's names."""
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Constant(value=value):
            return isinstance(value, int)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            if name in ("min", "max"):
                return all(is_whole(argument) for argument in node.args)
            return name in WHOLE_CALLS or name.startswith(WHOLE_BEGINNINGS)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv(),
                       right=right):  # fmt: skip
            return is_whole(left) and is_whole(right)
        case ast.BoolOp(values=values):
            return all(is_whole(value) for value in values)
        case ast.IfExp(body=body, orelse=other):
            return is_whole(body) and is_whole(other)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return is_whole_name(name)
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return is_whole_name(name)
    return False


def is_whole_name(name: str) -> bool:
    return name in WHOLE_NAMES or name.startswith(WHOLE_BEGINNINGS) or name.endswith("_bytes")


def is_whole_sum(call: ast.Call) -> bool:
    match call.args[0]:
        case ast.GeneratorExp(elt=element) | ast.ListComp(elt=element):
            return is_whole(element)
        case ast.Call(func=ast.Name(id="map"), args=[ast.Name(id=name), *_]):
            return name in WHOLE_CALLS
        case ast.Call(
            func=ast.Attribute(attr="values", value=ast.Name(id=name) | ast.Attribute(attr=name))
        ):
            return name in COUNTERS
    return False


def sums(source: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sum":
            yield node


def test_sums_of_floats_do_not_depend_on_the_version_of_python():
    doubtful = {
        f"{file.relative_to(SOURCE)}:{call.lineno}: {ast.unparse(call)}"
        for file in SOURCE.rglob("*.py")
        for call in sums(file.read_text(encoding="utf-8"))
        if not is_whole_sum(call)
        and f"{file.relative_to(SOURCE)}: {ast.unparse(call)}" not in ALLOWED
    }
    assert not doubtful, "use math.fsum, or say in ALLOWED that these are whole numbers"
