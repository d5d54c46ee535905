"""Values inside JSON content: where they are, and content with one of them exchanged."""

import json


def paths(value, path=()):
    """Where a JSON value has something to exchange, itself excepted."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in inner:
        yield (*path, key)
        yield from paths(entry, (*path, key))


def exchanged(content, path, value):
    """A copy of the content with another value at a path."""
    copy = json.loads(json.dumps(content))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copy
