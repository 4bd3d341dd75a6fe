package main

import (
	"bytes"
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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/yuin/goldmark"

	"github.com/ibweave/ibweave/cmd/cli"
)

// docs/reference has what the commands say of themselves, and no page of a command that there
// is no longer.
func TestReference(t *testing.T) {
	const dir = "../../docs/reference"
	want, err := cli.Pages((&app{}).rootCommand(), "markdown")
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
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

var (
	tags    = regexp.MustCompile(`<[^>]*>`)
	heading = regexp.MustCompile(`(?m)^(?:([A-Z][a-z]+(?: [a-z]+)?):|<h2>(.*)</h2>|([A-Z]+(?: [A-Z]+)?))$`)
)

// sectionWords is the words of a page by its headings, which differ between the forms only in
// their case; what is said before the first section is one.
func sectionWords(text string, plain func(string) string) map[string]string {
	sections := map[string]string{}
	name, from := "", 0
	cut := func(to int) { sections[name] += strings.Join(strings.Fields(plain(text[from:to])), " ") }
	for _, m := range heading.FindAllStringSubmatchIndex(text, -1) {
		for i := 2; i < len(m); i += 2 {
			if m[i] < 0 {
				continue
			}
			if title := strings.ToLower(text[m[i]:m[i+1]]); slices.Contains([]string{
				"name", "synopsis", "usage", "description", "examples", "commands", "flags", "global flags", "exit status", "see also",
				"audit", "route", "change", "live", "simulate", "export", // groups of commands
			}, title) {
				cut(m[0])
				name, from = title, m[1]
			}
		}
	}
	cut(len(text))
	return sections
}

// rendered is a page as people read it: by groff, by a reader of Markdown, and as it is.
func rendered(t *testing.T, p *cli.Page) (help, man, markdown map[string]string, manText string) {
	t.Helper()
	cmd := exec.Command("groff", "-man", "-Tascii", "-P-cbou", "-rLL=80n", "-ww")
	cmd.Stdin = strings.NewReader(p.Man())
	var warnings bytes.Buffer
	cmd.Stderr = &warnings
	out, err := cmd.Output()
	if err != nil || warnings.Len() > 0 {
		t.Fatalf("%s: groff: %v, %s", p.Command, err, &warnings)
	}
	same := func(s string) string { return s }
	help = sectionWords(p.Help(), same)
	lines := strings.Split(string(out), "\n")
	for i, line := range lines { // page heads and feet
		if strings.HasPrefix(line, "IBWEAVE") || strings.HasPrefix(line, "ibweave "+version) {
			lines[i] = ""
		}
	}
	man = sectionWords(strings.Join(lines, "\n"), same)
	var b bytes.Buffer
	if err := goldmark.Convert([]byte(p.Markdown()), &b); err != nil {
		t.Fatal(err)
	}
	markdown = sectionWords(b.String(), func(s string) string {
		s = strings.ReplaceAll(s, "</h1>", "</h1>\x00")
		return html.UnescapeString(tags.ReplaceAllString(s, " "))
	})
	return help, man, markdown, string(out)
}

// The help text, the manual page and the page of docs/reference of each command say the same
// words, in each section, when groff, a reader of Markdown and a terminal show them.
func TestPagesAgree(t *testing.T) {
	pages := 0
	cli.EachPage((&app{}).rootCommand(), func(p *cli.Page) {
		pages++
		help, man, markdown, manText := rendered(t, p)
		for name, text := range map[string]string{"help": p.Help(), "man": manText} {
			for line := range strings.Lines(text) {
				if n := len([]rune(strings.TrimRight(line, "\n"))); n > cli.Columns {
					t.Errorf("%s: a line of the %s has %d columns: %s", p.Command, name, n, line)
				}
			}
		}
		squeeze := func(s string) string { // blanks around markup are not words
			return strings.NewReplacer(" ", "", "\x00", "").Replace(s)
		}
		for i, section := range []string{
			"", "usage", "examples",
			"commands", "audit", "route", "change", "live", "simulate", "export", "flags", "global flags", "exit status",
		} {
			words := help[section]
			inMan, inMarkdown := man[section], markdown[section]
			switch section {
			case "":
				inMan = man["description"]
				_, inMarkdown, _ = strings.Cut(markdown[""], "\x00")
				head := strings.TrimSpace(p.Short + " " + p.Synopsis)
				rest, ok := strings.CutPrefix(squeeze(inMarkdown), squeeze(head))
				if !ok {
					t.Errorf("%s: the Markdown does not begin with %q", p.Command, head)
				}
				inMarkdown = rest
			case "usage":
				inMan, inMarkdown = man["synopsis"], p.Synopsis // which the case before has seen
			}
			inMarkdown = squeeze(inMarkdown)
			if i >= 3 || section == "" {
				// "* word: text" is "word text" elsewhere.
				inMarkdown, words, inMan = strings.ReplaceAll(inMarkdown, ":", ""), strings.ReplaceAll(words, ":", ""), strings.ReplaceAll(inMan, ":", "")
			}
			if squeeze(words) != squeeze(inMan) {
				t.Errorf("%s: %s: help and manual page differ:\n%s\n%s", p.Command, section, words, inMan)
			}
			if squeeze(words) != inMarkdown {
				t.Errorf("%s: %s: help and Markdown differ:\n%s\n%s", p.Command, section, squeeze(words), inMarkdown)
			}
		}
		if p.Synopsis != "" && !strings.Contains(help["flags"], "--help print this text") {
			t.Errorf("%s: no flags in %q", p.Command, help["flags"])
		}
		if want := strings.TrimSpace(strings.ReplaceAll(p.Command, " ", "-") + " - " + p.Short); man["name"] != want {
			t.Errorf("%s: the name of the manual page is %q, want %q", p.Command, man["name"], want)
		}
	})
	if pages < 40 {
		t.Errorf("%d pages, want 40 or more", pages)
	}
}

// What --help prints of the program has every command that is not hidden, and fits 40 lines of
// a terminal.
func TestOverview(t *testing.T) {
	root := (&app{}).rootCommand()
	text := cli.PageOf(root).Overview()
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
		if c.Example == "" && c.Runnable() && parent != "completion" && path != "ibweave version" {
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
