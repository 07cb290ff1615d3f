"""A solution of exercises/program.py."""


def drop_dead(calls, results):
    needed, kept = set(results), []
    for call in reversed(calls):
        if call[2] in needed:
            kept.append(call)
            needed.update(call[1])
    return kept[::-1]


def share_common(calls, results):
    there, renamed, kept = {}, {}, []
    for operation, inputs, output in calls:
        inputs = tuple(renamed.get(name, name) for name in inputs)
        if (operation, inputs) in there:
            renamed[output] = there[operation, inputs]
        else:
            there[operation, inputs] = output
            kept.append((operation, inputs, output))
    return kept, [renamed.get(name, name) for name in results]


if __name__ == "__main__":
    import _check

    _check.run(globals())
