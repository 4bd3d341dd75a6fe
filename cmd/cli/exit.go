package cli

// The exit statuses of every command.
const (
	Clean       = 0
	Findings    = 1
	Usage       = 2
	Input       = 3
	Environment = 4
)

// FindingsNote is the annotation of a root command that says what status 1 of its program is.
const FindingsNote = "findings"

// exitStatuses is in every help text and manual page.
var exitStatuses = []Item{
	{"0", "done and clean"},
	{"1", "done, and there are findings at or above --fail-on, rules that the input leaves undecided, or differences; or the engine does not support this fabric"},
	{"2", "wrong usage"},
	{"3", "input that cannot be read or is invalid; the message has file:line"},
	{"4", "the environment lacks something, an input or output error, or interrupted"},
}
