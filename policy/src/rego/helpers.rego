# Helpers for policies over redacted plans. Import them with `import data.stackship.helpers`.
#
# `rc` is a member of `input.plan.resource_changes`. `path` is an array that leads from
# `rc.change.after` to a value: ["tags", "owner"], ["ingress", 0, "cidr_blocks"].
package stackship.helpers

# The value, or something that contains it, is known only after the apply.
unknown(rc, path) if _marked(rc, path, "unknown")

# The value, or something that contains it, is withheld because it is sensitive.
sensitive(rc, path) if _marked(rc, path, "sensitive")

# The value is there, and is neither unknown nor sensitive, nor is anything inside it.
known(rc, path) if {
	is_object(rc.change.after)
	value := object.get(rc.change.after, path, null)
	value != null
	not unknown(rc, path)
	not sensitive(rc, path)
	not _holds_mark(value)
}

# The set of actions that the plan takes on the resource.
actions(rc) := {action | some action in rc.change.actions}

_marked(rc, path, mark) if {
	is_object(rc.change.after)
	some length in numbers.range(0, count(path))
	_is_mark(object.get(rc.change.after, array.slice(path, 0, length), null), mark)
}

# There is no `walk`: the engine's graph builtins are not part of what policies have. A quote inside a
# text is escaped, so only a key or a whole text can look like this.
_holds_mark(value) if contains(json.marshal(value), `"__stackship"`)

_is_mark(value, mark) if value == {"__stackship": mark}
