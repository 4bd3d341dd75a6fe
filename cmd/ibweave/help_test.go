package main

import (
	"bytes"
	"flag"
	"html"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/yuin/goldmark"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// docs/reference has what the commands say of themselves, and no page of a command that there
// is no longer.
func TestReference(t *testing.T) {
	const dir = "../../docs/reference"
	want := short.Must(cli.Pages((&app{}).rootCommand(), "markdown"))(t)
	files := short.Must(os.ReadDir(dir))(t)
	for _, f := range files {
		if want[f.Name()] == "" && f.Name() != "papers" { // those of ibweave-papers
			t.Errorf("%s/%s: there is no such command; remove it", dir, f.Name())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want[name] {
			t.Errorf("%s/%s is not what the program says: run make reference", dir, name)
		}
	}
	if len(want) < 40 {
		t.Errorf("%d pages, want 40 or more", len(want))
	}
}

// The help text, the manual page and the page of docs/reference of each command have all that
// it says of itself, when a terminal, groff (where tests may start it) and a reader of Markdown
// show them; groff has no warning, and lines fit a terminal.
func TestPagesAgree(t *testing.T) {
	tags := regexp.MustCompile(`<[^>]*>`)
	wordsOf := func(text string) string { // markup, breaks and bullets are no words
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return r
			}
			return -1
		}, text)
	}
	root := (&app{}).rootCommand()
	man := short.Must(cli.Pages(root, "man"))(t)
	markdown := short.Must(cli.Pages(root, "markdown"))(t)
	if len(man) < 40 || len(markdown) != len(man) {
		t.Errorf("%d manual pages, %d of the reference, want as many, and 40 or more", len(man), len(markdown))
	}
	cli.Walk(root, func(c *cobra.Command) {
		page := man[strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"]
		if page == "" {
			return
		}
		var shown bytes.Buffer
		name := "README.md"
		if _, below, ok := strings.Cut(c.CommandPath(), " "); ok {
			name = strings.ReplaceAll(below, " ", "-") + ".md"
		}
		short.Check(t, goldmark.Convert([]byte(markdown[name]), &shown))
		texts := append(strings.Split(c.Long, "\n"), c.Short)
		if c.HasParent() && c.Runnable() {
			texts = append(texts, c.Example, "Exit status", "done and clean", "3 input that cannot be read or is invalid; the message has file:line")
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden {
					texts = append(texts, f.Name, f.Usage)
				}
			})
		}
		forms := map[string]string{
			"help": cli.Help(c) + c.Short, "markdown": html.UnescapeString(tags.ReplaceAllString(shown.String(), "")),
		}
		if short.All() {
			cmd := exec.Command("groff", "-man", "-Tascii", "-P-cbou", "-rLL=80n", "-rHY=0", "-ww")
			cmd.Stdin = strings.NewReader(page)
			var warnings bytes.Buffer
			cmd.Stderr = &warnings
			out, err := cmd.Output()
			if err != nil || warnings.Len() > 0 {
				t.Errorf("%s: groff: %v, %s", c.CommandPath(), err, &warnings)
			}
			forms["man"] = string(out)
		}
		for form, text := range forms {
			words := strings.ToLower(wordsOf(text))
			for _, part := range texts {
				if !strings.Contains(words, strings.ToLower(wordsOf(part))) {
					t.Errorf("%s: %s lacks %q:\n%s", c.CommandPath(), form, part, text)
				}
			}
			for line := range strings.Lines(text) {
				if n := len([]rune(strings.TrimRight(line, "\n"))); n > cli.Columns && form != "markdown" && !strings.Contains(line, "brew") { // cobra's own
					t.Errorf("%s: a line of the %s has %d columns: %s", c.CommandPath(), form, n, line)
				}
			}
		}
	})
}

// What --help prints of the program has every command that is not hidden, and fits 40 lines of
// a terminal.
func TestOverview(t *testing.T) {
	root := (&app{}).rootCommand()
	text := cli.Help(root)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > 40 || slices.ContainsFunc(lines, func(l string) bool { return len(l) > cli.Columns }) {
		t.Errorf("%d lines, want at most 40, of at most %d columns:\n%s", len(lines), cli.Columns, text)
	}
	for _, c := range root.Commands() {
		if shown := strings.Contains(text, "\n  "+c.Name()+" "); shown == c.Hidden {
			t.Errorf("%s: shown %v, hidden %v", c.Name(), shown, c.Hidden)
		}
	}
}

// Every command says in sentences what it does and has an example, every flag says what its
// value is, and pages of docs that they name exist.
func TestHelpIsComplete(t *testing.T) {
	docs := regexp.MustCompile(`docs/[\w/.-]+\.md`)
	cli.Walk((&app{}).rootCommand(), func(c *cobra.Command) {
		path := c.CommandPath()
		if path == "ibweave help" || c.DisableFlagParsing { // which has moved
			return
		}
		if len(c.Long) < 30 || !strings.Contains(c.Long, ".") {
			t.Errorf("%s says too little: %q", path, c.Long)
		}
		parent := strings.Fields(path)[max(0, len(strings.Fields(path))-2)]
		if c.Example == "" && c.Runnable() && parent != "completion" && path != "ibweave completion" && path != "ibweave version" {
			t.Errorf("%s has no example", path)
		}
		text := c.Long
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			value, usage := pflag.UnquoteUsage(f)
			text += usage
			if f.Value.Type() != "bool" && (value == "string" || value == "") {
				t.Errorf("%s --%s does not say what its value is: %s", path, f.Name, usage)
			}
		})
		for _, name := range docs.FindAllString(text, -1) {
			if _, err := os.Stat("../../" + name); err != nil {
				t.Errorf("%s names %s, which does not exist", path, name)
			}
		}
	})
}

// An error that says what a command needs or takes names the command that was typed.
func TestErrorsNameCommand(t *testing.T) {
	topology := filepath.Join(tables(t), "fabric.ibnetdiscover")
	needs, said := regexp.MustCompile(`(?m)^ibweave: (\w+) (?:needs|takes) `), 0
	cli.Walk((&app{}).rootCommand(), func(c *cobra.Command) {
		if c.Flags().Lookup("topology") == nil {
			return
		}
		for _, args := range [][]string{{}, {"-t", topology}, {"-t", topology, "x", "y"}, {"-t", topology, "--lfts", "x", tables(t)}} {
			var errs bytes.Buffer
			got := run(append([]string{c.Name()}, args...), strings.NewReader(""), io.Discard, &errs)
			for _, m := range needs.FindAllStringSubmatch(errs.String(), -1) {
				if said++; m[1] != c.Name() || got != exitUsage {
					t.Errorf("%s %v: exit status %d, %s", c.Name(), args, got, &errs)
				}
			}
		}
	})
	if said < 20 {
		t.Errorf("%d errors name a command, want 20 or more", said)
	}
}

// Each text of help belongs to a command.
func TestHelpTextsHaveCommands(t *testing.T) {
	root := (&app{}).rootCommand()
	files := short.Must(helpTexts.ReadDir("help"))(t)
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".txt")
		if c, _, err := root.Find([]string{name}); name != root.Name() && (err != nil || c.Long == "") {
			t.Errorf("help/%s: no command %s", f.Name(), name)
		}
	}
}

var update = flag.Bool("update", false, "write the table of forms to docs/dev/forms.md")

// formsTable is the table of forms in Markdown.
func formsTable() string {
	var b strings.Builder
	for _, kind := range dump.Kinds() {
		if kind == dump.HelpsOpenSM {
			continue
		}
		b.WriteString("\n| " + string(kind) + " | written by | lacks |\n|---|---|---|\n")
		for _, form := range dump.Forms(kind) {
			info := form.Info()
			b.WriteString("| " + info.Name + " | " + info.From + " | " + info.Lacks + " |\n")
		}
	}
	return b.String() + "\n"
}

// docs/dev/forms.md has the table that help prints.
func TestFormsDoc(t *testing.T) {
	const file = "../../docs/dev/forms.md"
	text := short.Must(os.ReadFile(file))(t)
	head, rest, ok := strings.Cut(string(text), "-update -->\n")
	_, tail, ok2 := strings.Cut(rest, "<!-- end -->\n")
	if !ok || !ok2 {
		t.Fatalf("%s has no marks around the table", file)
	}
	want := head + "-update -->\n" + formsTable() + "<!-- end -->\n" + tail
	if *update {
		short.Check(t, os.WriteFile(file, []byte(want), 0o666))
	} else if want != string(text) {
		t.Errorf("%s has another table than ibweave help forms: run go test ./cmd/ibweave -run TestFormsDoc -update", file)
	}
	help := formsText()
	for _, kind := range dump.Kinds() {
		for _, form := range dump.Forms(kind) {
			if kind != dump.HelpsOpenSM && !strings.Contains(help, "\n  "+form.String()+"  from ") {
				t.Errorf("help has no %s", form)
			}
		}
	}
}
