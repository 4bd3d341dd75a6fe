// Package short keeps tests short: they check errors and compare results
// in a word, wait for events, run fewer cases under go test -short, keep
// temporary files in memory, collect garbage less often, and overlap while
// they wait. Only tests import it. It makes no promise to other modules.
package short

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A test's heap is a few MiB, and collecting it takes a tenth of the CPU time. Near 1 GiB
// collections are as frequent as by default. Variables of the environment override this.
func init() {
	if os.Getenv("GOGC")+os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(1 << 30)
	}
}

// All returns true if tests start Chromium, Firefox, Slurm, Prometheus,
// groff and jq, too: make test-all sets $IBWEAVE_TESTS to all.
func All() bool { return os.Getenv("IBWEAVE_TESTS") == "all" }

// NeedAll skips a test, unless tests start the programs of All.
func NeedAll(tb testing.TB) {
	tb.Helper()
	if !All() {
		tb.Skip("make test-all runs it, or IBWEAVE_TESTS=all go test")
	}
}

// NeedPrograms skips a test that starts other programs under -short.
func NeedPrograms(tb testing.TB) {
	if testing.Short() {
		tb.Helper()
		tb.Skip("go test without -short runs it")
	}
}

// Ending is a context that ends when its error has been asked for Left times.
type Ending struct {
	context.Context
	Left atomic.Int32
}

// Err returns context.Canceled from then on.
func (c *Ending) Err() error {
	if c.Left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TB has the methods that test helpers call, of a testing.T, B or F, or of rapid's T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// Check ends a test with an error, unless it is nil. Like all checks here it calls Helper
// only if the test fails: Helper walks the stack, and some tests compare in loops.
func Check(t TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// Must returns a function that returns v, or ends the test with the error:
//
//	f := short.Must(gen.FatTree(spec))(t)
func Must[T any](v T, err error) func(TB) T {
	return func(t TB) T {
		t.Helper()
		Check(t, err)
		return v
	}
}

// Must2 is Must for two values.
func Must2[T, U any](v T, w U, err error) func(TB) (T, U) {
	return func(t TB) (T, U) {
		t.Helper()
		Check(t, err)
		return v, w
	}
}

// Equal compares a result with what the test wants. The error begins with what.
func Equal[T comparable](t TB, got, want T, what ...any) {
	if got != want {
		t.Helper()
		t.Errorf("%s", differ(got, want, what))
	}
}

// MustEqual is Equal, and ends the test with the error.
func MustEqual[T comparable](t TB, got, want T, what ...any) {
	if got != want {
		t.Helper()
		t.Fatal(differ(got, want, what))
	}
}

// EqualList is Equal for slices.
func EqualList[T comparable](t TB, got, want []T, what ...any) {
	if !slices.Equal(got, want) {
		t.Helper()
		t.Errorf("%s", differ(got, want, what))
	}
}

// Contains is Equal for text that must contain part.
func Contains(t TB, text, part string, what ...any) {
	if !strings.Contains(text, part) {
		t.Helper()
		t.Errorf("%s", differ(text, part, append(what, "a part")))
	}
}

// Diff is Equal by the rules of go-cmp.
func Diff(t TB, got, want any, what ...any) {
	if diff := cmp.Diff(want, got); diff != "" {
		t.Helper()
		t.Errorf("%s(-want +got)\n%s", fmt.Sprintln(what...), diff)
	}
}

func differ(got, want any, what []any) string {
	form := "%sgot %v, want %v"
	if _, ok := got.([]byte); ok {
		form = "%sgot\n%s\nwant\n%s"
	}
	return fmt.Sprintf(form, fmt.Sprintln(what...), got, want)
}

// hung is how long tests wait for an event: no machine is that slow.
const hung = 5 * time.Minute

// Await waits until done returns true. If that takes longer than hung, it ends the test with
// what it waited for.
func Await(t TB, done func() bool, what ...any) {
	t.Helper()
	for end := time.Now().Add(hung); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(append([]any{"hung: "}, what...)...)
		}
	}
}

// Of returns all, or few under -short.
func Of[T any](all, few T) T {
	if testing.Short() {
		return few
	}
	return all
}

// Usual returns all under make test-all, else usual: make test draws fewer
// random cases, tries fewer fabrics, and leaves out programs that run for long.
func Usual[T any](all, usual T) T {
	if All() {
		return all
	}
	return usual
}

// Part returns the cases of a table: all, or the first few under -short.
func Part[T any](few int, cases []T) []T {
	return cases[:Of(len(cases), min(few, len(cases)))]
}

// Keys returns the keys of a table of cases: all, or only few under -short.
func Keys[K comparable, T any](table map[K]T, few ...K) (keys []K) {
	if testing.Short() {
		return few
	}
	for key := range table {
		keys = append(keys, key)
	}
	return keys
}

// Overlap lets n parallel tests run at once under -short, where
// tests wait for other programs more than they compute. TestMain
// calls it. It parses the flags; -parallel overrides n.
func Overlap(n int) {
	if !flag.Parsed() {
		flag.Parse()
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if testing.Short() && !given {
		_ = flag.Lookup("test.parallel").Value.Set(strconv.Itoa(n)) // fails for no number
	}
}

// UseMemory lets TestMain put temporary files into memory, unless $TMPDIR says where they go:
// thousands of small files cost more CPU time on a disk than the tests that make them.
func UseMemory() {
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err == nil && info.IsDir() && os.Getenv("TMPDIR") == "" {
		_ = os.Setenv("TMPDIR", memory) // fails for a name or value that no variable can have
	}
}
