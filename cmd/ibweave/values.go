package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/internal/text"
)

// Bounds that are far from any use, and where sums are still finite.
const (
	maxFactor = 1e6     // times a load
	maxNumber = 1 << 30 // of something that is counted; messages do not say it
)

// value is a flag whose text parse reads, with an error that says what is wanted. A text that parse
// refuses waits for wrongValues, so that a command says all that is wrong with its flags.
type value[T any] struct {
	to    *T
	parse func(text string) (T, error)
	text  string
	kind  string   // what help calls it, unless the usage says it
	words []string // all that it takes, for shells; nil for others
	err   error    // of text
}

func (v *value[T]) String() string                       { return v.text }
func (v *value[T]) Type() string                         { return v.kind }
func (v *value[T]) refused() (words []string, err error) { return v.words, v.err }

func (v *value[T]) Set(text string) error {
	x, err := v.parse(text)
	if v.text, v.err = text, err; err == nil {
		*v.to = x
	}
	return nil
}

// refusing is any value.
type refusing interface {
	refused() (words []string, err error)
}

// itemError is what is wrong with an item of a list.
type itemError struct {
	item string
	error
}

// wrongValue returns what is wrong with the value of a flag, and which part of it: an item of a list,
// else all. The error is nil for nothing.
func wrongValue(f *pflag.Flag) (given string, err error) {
	if v, ok := f.Value.(refusing); ok {
		_, err = v.refused()
	}
	if x, ok := errors.AsType[*itemError](err); ok {
		return x.item, x.error
	}
	return f.Value.String(), err
}

// wrongValues returns an error for each flag of a command that has a wrong value.
func wrongValues(c *cobra.Command) (list []error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if given, err := wrongValue(f); err != nil {
			if _, ok := parseNumber[float64](given); !ok {
				given = strconv.Quote(given)
			}
			list = append(list, usagef("--%s %s: %w", f.Name, given, err))
		}
	})
	return list
}

// flagError is the error of an unknown flag, or one that lacks its value.
func flagError(cmd *cobra.Command, err error) error {
	return &usageError{fmt.Errorf("%w%s", err, cli.NearFlag(cmd, err))}
}

// parsedFlag defines a flag with a form of its own, and the default that is in *to and text has.
func parsedFlag[T any](flags *pflag.FlagSet, to *T, name, text, usage string, parse func(text string) (T, error)) {
	flags.Var(&value[T]{to: to, parse: parse, text: text, kind: "value"}, name, usage)
}

// listFlag defines a flag whose value is a list with commas, and has the default that text has.
func listFlag[T any](flags *pflag.FlagSet, to *[]T, name, text, usage string, parse func(item string) ([]T, error)) {
	flags.Var(&value[[]T]{to: to, text: text, kind: "list", parse: func(text string) (out []T, err error) {
		for item := range strings.SplitSeq(text, ",") {
			item = strings.TrimSpace(item)
			list, err := parse(item)
			if err != nil {
				return nil, &itemError{item, err}
			}
			if out = append(out, list...); len(out) > maxPoints {
				return nil, fmt.Errorf("more than %d values", maxPoints)
			}
		}
		return out, nil
	}}, name, usage)
}

// wordFlag defines a flag that takes one of words, and has the default that is in *to. Shells complete them.
func wordFlag(flags *pflag.FlagSet, to *string, name, usage string, words ...string) {
	flags.Var(&value[string]{to: to, text: *to, kind: "string", words: words, parse: func(given string) (string, error) {
		if !slices.Contains(words, given) {
			return "", errors.New("want " + text.List(words, "or"))
		}
		return given, nil
	}}, name, usage)
}

// numeric is a type of numbers that flags have.
type numeric interface {
	int | int64 | uint8 | uint16 | uint32 | uint64 | float64
}

// numberFlag defines a flag with bounds, and the default that is in *to. A default of 0 that stands for
// "not given" is below them: the unset variable of a script would lift a limit.
func numberFlag[T numeric](flags *pflag.FlagSet, to *T, name string, least, most T, usage string) {
	flags.Var(&value[T]{to: to, parse: within(least, most), text: fmt.Sprint(*to), kind: "N"}, name, usage)
}

// within returns a parser of numbers from least to most, which refuses others, and says which it takes.
func within[T numeric](least, most T) func(text string) (T, error) {
	return func(text string) (T, error) {
		x, ok := parseNumber[T](text)
		switch {
		case ok && x >= least && x <= most:
			return x, nil
		case float64(most) == maxNumber:
			return 0, fmt.Errorf("want %s or more", plain(least))
		}
		return 0, fmt.Errorf("want %s to %s", plain(least), plain(most))
	}
}

// parseNumber reads a number; ok is false for no number, or one that T does not have.
func parseNumber[T numeric](text string) (x T, ok bool) {
	if T(1)/T(2) != 0 {
		f, err := strconv.ParseFloat(text, 64)
		return T(f), err == nil
	}
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return T(n), int64(T(n)) == n && (n < 0) == (T(n) < 0)
	}
	n, err := strconv.ParseUint(text, 0, 64)
	return T(n), err == nil && uint64(T(n)) == n && T(n) >= 0
}

// plain is a number without an exponent.
func plain[T numeric](x T) string {
	if f, ok := any(x).(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	if float64(x) == math.MaxUint64 {
		return "2^64-1"
	}
	return fmt.Sprint(x)
}

// scope has the conditions under which flags have an effect. A condition is alternatives with blanks between
// them: the name of a flag, which is given; or a flag and its values, "engine=xy|updn", which it has,
// by default too.
type scope struct {
	flags string // names
	with  string // condition that has to hold; "" for none
	not   string // condition that may not hold; "" for none
	why   string // ends the sentence
	// note prints a line on standard error and goes on, since the result is what was
	// asked for: without it a flag that has no effect is wrong usage.
	note bool
}

// random and unsaid are reasons in scopes of several commands.
const (
	random = "nothing is drawn at random then"
	unsaid = "JSON has all of it"
)

// scopeOf is the annotation of a flag that has its scope.
const scopeOf = "scope"

// scopes sets the conditions under which flags that are defined already have an effect.
func scopes(flags *pflag.FlagSet, list ...scope) {
	for _, s := range list {
		for name := range strings.FieldsSeq(s.flags) {
			if err := flags.SetAnnotation(name, scopeOf, []string{s.with, s.not, s.why, strconv.FormatBool(s.note)}); err != nil {
				panic(err) // there is no such flag: found by every test
			}
		}
	}
}

// flagScope returns the scope of a flag, without any condition if it has none.
func flagScope(f *pflag.Flag) scope {
	if a := f.Annotations[scopeOf]; a != nil {
		return scope{f.Name, a[0], a[1], a[2], a[3] == "true"}
	}
	return scope{}
}

// lists are flags that make a command list something and do nothing else.
var lists = map[string][]string{"check": {"rules", "explain"}, "compile": {"engines"}}

// besideLists are flags that scripts pass to each call: beside one that lists they are
// said, and not refused.
const besideLists = "date fail-on format install-dir kinds lenient node-name-map source strict"

// givenFlag returns true if a flag was set to another value than its default.
func givenFlag(f *pflag.Flag) bool {
	return f != nil && f.Changed && f.Value.String() != f.DefValue
}

// holds returns the first alternative of a condition that holds, in words, and true; else false.
func holds(condition string, flags *pflag.FlagSet) (string, bool) {
	for _, c := range strings.Fields(condition) {
		name, values, isValue := strings.Cut(c, "=")
		f := flags.Lookup(name)
		value := ""
		if f != nil {
			value = f.Value.String()
		}
		if e, err := compile.EngineByName(value); name == "engine" && err == nil {
			value = e.Name()
		}
		switch {
		case name == "command" && slices.Contains(strings.Split(values, "|"), flags.Name()):
			return name, true
		case f == nil:
		case name == "engine" && value == "":
			return "an engine that is chosen", true
		case isValue && slices.Contains(strings.Split(values, "|"), value):
			return "--" + name + " " + f.Value.String(), true
		case !isValue && givenFlag(f):
			return "--" + name, true
		}
	}
	return "", false
}

// conditionText is a condition in words.
func conditionText(condition string) string {
	var words []string
	for _, c := range strings.Fields(condition) {
		name, values, isValue := strings.Cut(c, "=")
		switch {
		case name == "command":
		case isValue:
			words = append(words, "--"+name+" "+strings.ReplaceAll(values, "|", ", "))
		default:
			words = append(words, "--"+name)
		}
	}
	return strings.Join(words, " or ")
}

// withoutEffect returns why a flag that is given has no effect, "" if it has one.
func withoutEffect(s *scope, flags *pflag.FlagSet) (reason string) {
	if _, ok := holds(s.with, flags); !ok && s.with != "" {
		reason = "has no effect without " + conditionText(s.with)
	} else if what, bad := holds(s.not, flags); bad {
		reason = "has no effect with " + what
	}
	if reason != "" && s.why != "" {
		reason += ": " + s.why
	}
	return reason
}

// checkScopes returns the flags without effect: wrong usage, or notes, lines for standard
// error. in is the simulation of sim, whose file may have lines for other kinds of
// traffic; nil for other commands.
func (a *app) checkScopes(cmd *cobra.Command, in *simulation) (notes []string, err error) {
	command := strings.TrimPrefix(cmd.CommandPath(), "ibweave ")
	flags := cmd.Flags()
	for _, list := range lists[command] {
		if !givenFlag(flags.Lookup(list)) {
			continue
		}
		var other error
		flags.Visit(func(f *pflag.Flag) {
			const reason = "--%s has no effect with --%s, which only lists"
			switch {
			case f.Name == list, f.Name == "log-level", f.Name == "log-format", f.Name == "color", !givenFlag(f), other != nil:
			case slices.Contains(strings.Fields(besideLists), f.Name):
				notes = append(notes, fmt.Sprintf(reason, f.Name, list))
			default:
				other = usagef(reason, f.Name, list)
			}
		})
		return notes, other
	}
	var wrong []error
	flags.VisitAll(func(f *pflag.Flag) {
		s := flagScope(f)
		reason := withoutEffect(&s, flags)
		if reason == "" || !givenFlag(f) || in != nil && in.from[f.Name] != nil {
			return
		}
		if reason = "--" + f.Name + " " + reason; s.note {
			notes = append(notes, reason)
		} else {
			wrong = append(wrong, usagef("%s", reason))
		}
	})
	return notes, errors.Join(wrong...)
}

// sayNotes prints the notes of checkScopes, of a command line that makes sense, or returns its error.
func (a *app) sayNotes(notes []string, err error) error {
	if err == nil {
		for _, note := range notes {
			fmt.Fprintf(a.stderr, "ibweave: %s\n", note)
		}
	}
	return err
}
