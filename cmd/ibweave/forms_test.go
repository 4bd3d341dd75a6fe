package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/dump"
)

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
