package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/internal/text"
)

// MaxFactor and MaxNumber are bounds far beyond any use; sums of such numbers are still finite.
const (
	MaxFactor = 1e6     // times a load
	MaxNumber = 1 << 30 // of counted things; messages do not name it
)

// Value is a flag whose text Parse reads; Parse's error says what is wanted. Set keeps
// the error for WrongValues, so that a command can report all its wrong flags together.
type Value[T any] struct {
	To    *T
	Parse func(text string) (T, error)
	Text  string
	Kind  string   // what help calls the value, unless the usage does
	words []string // all valid words, for shells; nil if there is no list
	err   error    // what is wrong with Text
}

func (v *Value[T]) String() string                       { return v.Text }
func (v *Value[T]) Type() string                         { return v.Kind }
func (v *Value[T]) Refused() (words []string, err error) { return v.words, v.err }

func (v *Value[T]) Set(text string) error {
	x, err := v.Parse(text)
	if v.Text, v.err = text, err; err == nil {
		*v.To = x
	}
	return nil
}

// Refusing is a Value of any type. Refused returns its valid words, nil without a list, and its error.
type Refusing interface {
	Refused() (words []string, err error)
}

// itemError is a wrong item of a list, and what is wrong with it.
type itemError struct {
	item string
	error
}

// WrongValue returns the error of a flag's value, nil for a valid one. given
// is the wrong part of the value: an item of a list, or the whole.
func WrongValue(f *pflag.Flag) (given string, err error) {
	if v, ok := f.Value.(Refusing); ok {
		_, err = v.Refused()
	}
	if x, ok := errors.AsType[*itemError](err); ok {
		return x.item, x.error
	}
	return f.Value.String(), err
}

// WrongValues returns an error for each flag of a command that has a wrong value.
func WrongValues(c *cobra.Command) (list []error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if given, err := WrongValue(f); err != nil {
			if _, ok := ParseNumber[float64](given); !ok {
				given = strconv.Quote(given)
			}
			list = append(list, Usagef("--%s %s: %w", f.Name, given, err))
		}
	})
	return list
}

// FlagError makes a UsageError of cobra's error about an unknown flag or a missing value.
func FlagError(cmd *cobra.Command, err error) error {
	return &UsageError{fmt.Errorf("%w%s", err, NearFlag(cmd, err))}
}

// ParsedFlag defines a flag that parse reads. The default is in *to; help shows it as text.
func ParsedFlag[T any](flags *pflag.FlagSet, to *T, name, text, usage string, parse func(text string) (T, error)) {
	flags.Var(&Value[T]{To: to, Parse: parse, Text: text, Kind: "value"}, name, usage)
}

// ListFlag is ParsedFlag for a list with commas; parse returns the values of one item.
func ListFlag[T any](flags *pflag.FlagSet, to *[]T, name, text, usage string, parse func(item string) ([]T, error)) {
	flags.Var(&Value[[]T]{To: to, Text: text, Kind: "list", Parse: func(text string) (out []T, err error) {
		for item := range strings.SplitSeq(text, ",") {
			item = strings.TrimSpace(item)
			list, err := parse(item)
			if err != nil {
				return nil, &itemError{item, err}
			}
			if out = append(out, list...); len(out) > maxItems {
				return nil, fmt.Errorf("more than %d values", maxItems)
			}
		}
		return out, nil
	}}, name, usage)
}

// WordFlag defines a flag that takes one of words, which shells complete. The default is in *to.
func WordFlag(flags *pflag.FlagSet, to *string, name, usage string, words ...string) {
	flags.Var(&Value[string]{To: to, Text: *to, Kind: "string", words: words, Parse: func(given string) (string, error) {
		if !slices.Contains(words, given) {
			return "", errors.New("want " + text.List(words, "or"))
		}
		return given, nil
	}}, name, usage)
}

// Numeric has the types of numbers that flags take.
type Numeric interface {
	int | int64 | uint8 | uint16 | uint32 | uint64 | float64
}

// NumberFlag defines a flag from least to most, with the default
// in *to. A default of 0 for "not given" is below least. So 0
// cannot be given: a script's unset variable would lift a limit.
func NumberFlag[T Numeric](flags *pflag.FlagSet, to *T, name string, least, most T, usage string) {
	flags.Var(&Value[T]{To: to, Parse: Within(least, most), Text: fmt.Sprint(*to), Kind: "N"}, name, usage)
}

// DefaultNumberFlag is NumberFlag with the default usual, which it puts into *to.
func DefaultNumberFlag[T Numeric](flags *pflag.FlagSet, to *T, name string, usual, least, most T, usage string) {
	*to = usual
	NumberFlag(flags, to, name, least, most, usage)
}

// Within returns a parser of numbers from least to most, whose error names these bounds.
func Within[T Numeric](least, most T) func(text string) (T, error) {
	return func(text string) (T, error) {
		x, ok := ParseNumber[T](text)
		switch {
		case ok && x >= least && x <= most:
			return x, nil
		case float64(most) == MaxNumber:
			return 0, fmt.Errorf("want %s or more", Plain(least))
		}
		return 0, fmt.Errorf("want %s to %s", Plain(least), Plain(most))
	}
}

// ParseNumber reads a number; ok is false if text is none, or one that T cannot hold.
func ParseNumber[T Numeric](text string) (x T, ok bool) {
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

// Plain returns a number without an exponent.
func Plain[T Numeric](x T) string {
	if f, ok := any(x).(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	if float64(x) == math.MaxUint64 {
		return "2^64-1"
	}
	return fmt.Sprint(x)
}

// Scope has the conditions under which flags have an effect. A
// condition lists alternatives, with blanks between them: the
// name of a flag, which must be given, or "engine=xy|updn", a
// flag that must have one of these values, given or by default.
type Scope struct {
	Flags string // names with blanks between them
	With  string // condition that has to hold; "" for none
	Not   string // condition that may not hold; "" for none
	Why   string // the reason, which ends the message
	// Note prints the message on standard error and goes on, since the result is
	// still what was asked for. Without Note a flag without effect is wrong usage.
	Note bool
}

// Random and Unsaid are reasons that the scopes of several commands give.
const (
	Random = "nothing is drawn at random then"
	Unsaid = "JSON has all of it"
)

// scopeOf is the annotation of a flag that holds its scope.
const scopeOf = "scope"

// Scopes sets conditions for flags that are defined already.
func Scopes(flags *pflag.FlagSet, list ...Scope) {
	for _, s := range list {
		for name := range strings.FieldsSeq(s.Flags) {
			if err := flags.SetAnnotation(name, scopeOf, []string{s.With, s.Not, s.Why, strconv.FormatBool(s.Note)}); err != nil {
				panic(err) // no such flag: every test would find it
			}
		}
	}
}

// FlagScope returns the scope of a flag; one without conditions if none was set.
func FlagScope(f *pflag.Flag) Scope {
	if a := f.Annotations[scopeOf]; a != nil {
		return Scope{f.Name, a[0], a[1], a[2], a[3] == "true"}
	}
	return Scope{}
}

// GivenFlag returns true if a flag was given a value other than its default.
func GivenFlag(f *pflag.Flag) bool {
	return f != nil && f.Changed && f.Value.String() != f.DefValue
}

// Holds returns true and, in words, the first alternative
// of condition that holds; false if none does.
func Holds(condition string, flags *pflag.FlagSet) (string, bool) {
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
		case !isValue && GivenFlag(f):
			return "--" + name, true
		}
	}
	return "", false
}

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

// WithoutEffect returns why a flag with scope s has no effect; "" if it has one.
func WithoutEffect(s *Scope, flags *pflag.FlagSet) (reason string) {
	if _, ok := Holds(s.With, flags); !ok && s.With != "" {
		reason = "has no effect without " + conditionText(s.With)
	} else if what, bad := Holds(s.Not, flags); bad {
		reason = "has no effect with " + what
	}
	if reason != "" && s.Why != "" {
		reason += ": " + s.Why
	}
	return reason
}

// CheckScopes finds given flags that have no effect. If a flag's scope has Note,
// notes has a line for standard error; err is the wrong usage of the others.
func CheckScopes(cmd *cobra.Command) (notes []string, err error) {
	flags := cmd.Flags()
	var wrong []error
	flags.VisitAll(func(f *pflag.Flag) {
		s := FlagScope(f)
		reason := WithoutEffect(&s, flags)
		if reason == "" || !GivenFlag(f) {
			return
		}
		if reason = "--" + f.Name + " " + reason; s.Note {
			notes = append(notes, reason)
		} else {
			wrong = append(wrong, Usagef("%s", reason))
		}
	})
	return notes, errors.Join(wrong...)
}

// maxItems is the most values that a list may have.
const maxItems = 100_000
