package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/internal/short"
)

// Every command of docs/dev/gen.md does what it says, and the page has each kind and each flag
// for any kind.
func TestGenPage(t *testing.T) {
	page := short.Must(os.ReadFile(filepath.Join("..", "..", "docs", "dev", "gen.md")))(t)
	text := strings.ReplaceAll(string(page), "\\\n", " ")
	commands := regexp.MustCompile("(?m)(?:`|^ +)ibweave gen ([a-z][^`\n]*)").FindAllStringSubmatch(text, -1)
	if len(commands) < 6 {
		t.Fatalf("%d commands in docs/dev/gen.md, want 6 or more", len(commands))
	}
	for _, c := range commands {
		args, _, _ := strings.Cut(c[1], " -o ")
		var out, errs bytes.Buffer
		if status := run(append(append([]string{"gen"}, strings.Fields(args)...), "-o", filepath.Join(t.TempDir(), "made")), nil, &out, &errs); status != 0 || errs.Len() > 0 {
			t.Errorf("gen %s: status %d\n%s", args, status, &errs)
		}
	}
	for _, c := range new(app).rootCommand().Commands() {
		if c.Name() != "gen" {
			continue
		}
		c.PersistentFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(text, "--"+f.Name) && f.Name != "output" && f.Name != "seed" {
				t.Errorf("docs/dev/gen.md lacks --%s", f.Name)
			}
		})
		for _, kind := range kindNames(c) {
			if !strings.Contains(text, "`"+kind+"`") {
				t.Errorf("docs/dev/gen.md lacks %s", kind)
			}
			checkPage(t, text, c, kind)
		}
	}
}

// checkPage looks for the flags of trees.
func checkPage(t *testing.T, text string, c *cobra.Command, kind string) {
	if kind != "tree" && kind != "director" {
		return
	}
	k, _ := short.Must2(c.Find([]string{kind}))(t)
	k.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(text, "--"+f.Name) && f.Name != "help" {
			t.Errorf("docs/dev/gen.md lacks --%s of %s", f.Name, kind)
		}
	})
}
