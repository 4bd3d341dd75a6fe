package topology

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// brokenText is a case of testdata/errors.txt: texts by their names. A strict read refuses "text"
// with "err"; a lenient one makes "want" of it with "problems", or fails with "err", too, where
// there is no "want". With "strict" a read that is neither does what a lenient one does.
type brokenText map[string]string

// broken reads testdata/errors.txt. A line "== NAME" begins a case, a line "-- NAME" a text of it,
// which has all lines up to the next such line.
func broken(t testing.TB) (cases []brokenText) {
	t.Helper()
	name := ""
	for line := range strings.Lines(string(short.Must(os.ReadFile("testdata/errors.txt"))(t))) {
		if title, ok := strings.CutPrefix(line, "== "); ok {
			cases = append(cases, brokenText{"name": strings.TrimSpace(title)})
			continue
		}
		c := cases[len(cases)-1]
		if title, ok := strings.CutPrefix(line, "-- "); ok {
			name = strings.TrimSpace(title)
			c[name] = ""
			continue
		}
		c[name] += line
	}
	return cases
}

func TestParseErrors(t *testing.T) {
	for _, test := range broken(t) {
		t.Run(test["name"], func(t *testing.T) {
			text := test["text"]
			_, strict := test["strict"]
			want, lenient := test["want"]
			f, problems, err := Parse("in", []byte(text), Options{Strict: strict})
			if err == nil {
				t.Fatalf("no error, but %s", tell(f))
			}
			if f != nil || problems != nil {
				t.Error("a result with an error")
			}
			var parse *fabric.ParseError
			if !errors.As(err, &parse) {
				t.Fatalf("%T", err)
			}
			short.Diff(t, err.Error()+"\n", test["err"], "strict")
			if n := parse.Line; n > 0 && !strings.HasPrefix(strings.Split(text, "\n")[n-1], parse.Text) {
				t.Errorf("line %d is not %q", n, parse.Text)
			}

			f, problems, err = Parse("in", []byte(text), Options{Lenient: !strict})
			if !lenient {
				if err == nil {
					t.Fatal("lenient: no error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			short.Diff(t, tell(f), want, "lenient")
			short.Diff(t, list(problems), test["problems"], "lenient: problems")
		})
	}
}
