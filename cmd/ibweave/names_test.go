package main

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"io"
	"io/fs"
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

// noFabric are the commands that read no fabric, with those below them.
var noFabric = []string{"gen", "forms", "join", "leave", "devices", "reproduce", "schedule", "version", "man", "completion", "help"}

// TestNameMapFlag: every command has --node-name-map, except those that read no fabric.
func TestNameMapFlag(t *testing.T) {
	a := &app{}
	for _, c := range a.rootCommand().Commands() {
		cli.Walk(c, func(c *cobra.Command) {
			first := strings.Fields(c.CommandPath())[1]
			if has, want := c.Flags().Lookup("node-name-map") != nil, !slices.Contains(noFabric, first); has != want {
				t.Errorf("%s has --node-name-map: %t, want %t; a command that reads a fabric calls nameFlag, others are in noFabric", c.CommandPath(), has, want)
			}
		})
	}
}

// The names that all nodes of a namedFabrics have.
const sameSwitch, sameHost = "SwitchIB Mellanox", "MT4115 ConnectX"

var comment = regexp.MustCompile(`# "(.)[^"]*"`)

// namedFabrics writes topologies with few names into the working directory, and tables
// and other files for every command.
func namedFabrics(t *testing.T, ibweave func(args ...string) string) {
	t.Helper()
	rename := func(file string) {
		data := short.Must(os.ReadFile(file))(t)
		data = comment.ReplaceAllFunc(data, func(b []byte) []byte {
			if bytes.HasPrefix(b, []byte(`# "h`)) {
				return []byte(`# "` + sameHost + `"`)
			}
			return []byte(`# "` + sameSwitch + `"`)
		})
		short.Check(t, os.WriteFile(file, data, 0o666))
	}
	edit := func(from, to string, change func(string) string) {
		data := short.Must(os.ReadFile(from))(t)
		text := change(string(data))
		if text == string(data) {
			t.Fatalf("%s: nothing changed", from)
		}
		short.Check(t, os.WriteFile(to, []byte(text), 0o666))
	}
	ibweave("gen", "fattree", "--radix", "8", "--levels", "2", "-o", "tree")
	ibweave("gen", "torus", "--dims", "6", "-o", "ring")
	ibweave("gen", "mesh", "--dims", "4x4", "-o", "mesh")
	ibweave("gen", "mesh", "--dims", "4x4", "--drop-links", "2", "-o", "faulty")
	for _, f := range []string{"tree", "ring", "mesh", "faulty"} {
		rename(f)
	}
	// A slow cable, a cable that is gone, another that leads elsewhere.
	edit("tree", "worn", func(s string) string {
		s = strings.ReplaceAll(s, "4xQDR", "4xHDR")
		cable := regexp.MustCompile(`(?m)^\[[67]\]\t"S-.*\n`)
		lines := cable.FindAllString(s, -1)
		peer := regexp.MustCompile(`\[(\d+)\]\t"S-([0-9a-f]{16})"\[(\d+)\]`)
		for i, slow := range []bool{false, true} {
			m := peer.FindStringSubmatch(lines[i])
			at := strings.Index(s, lines[i])
			own := regexp.MustCompile(`switchguid=0x([0-9a-f]+)`).FindAllStringSubmatch(s[:at], -1)
			back := regexp.MustCompile(fmt.Sprintf(`(?m)^\[%s\]\t"S-%016s"\[%s\].*\n`, m[3], own[len(own)-1][1], m[1]))
			section := strings.Index(s, fmt.Sprintf("Switch\t8 \"S-%s\"", m[2]))
			other := section + back.FindStringIndex(s[section:])[0]
			reverse := back.FindString(s[section:])
			if slow {
				s = s[:other] + strings.Replace(reverse, "4xHDR", "1xSDR", 1) + s[other+len(reverse):]
				at = strings.Index(s, lines[i])
				s = s[:at] + strings.Replace(lines[i], "4xHDR", "1xSDR", 1) + s[at+len(lines[i]):]
			} else {
				s = s[:other] + s[other+len(reverse):]
				at = strings.Index(s, lines[i])
				s = s[:at] + s[at+len(lines[i]):]
			}
		}
		return s
	})
	groups := "groups:\n  - name: all\n    receivers: [\"re:^MT\"]\n"
	for name, text := range map[string]string{
		"groups":  groups,
		"policy":  "topology:\n  expected: tree\nrouting:\n  require: [minimal, updown]\n",
		"generic": "topology:\n  generated: fattree radix 12\nrouting:\n  require: [xy, updown]\n",
	} {
		short.Check(t, os.WriteFile(name, []byte(text), 0o666))
	}
	ibweave("compile", "-t", "tree", "-e", "updn", "-g", "groups", "-o", "updn")
	ibweave("compile", "-t", "tree", "-e", "fattree", "-o", "fat")
	ibweave("compile", "-t", "worn", "-e", "updn", "-g", "groups", "-o", "other")
	ibweave("compile", "-t", "ring", "-e", "minhop", "-g", "groups", "--force", "-o", "loop")
	ibweave("compile", "-t", "mesh", "-e", "xy", "-g", "groups", "-o", "grid")
	// Entries that are missing, lead elsewhere, or to a port without a cable.
	entries := func(s string) string {
		n := 0
		return regexp.MustCompile(`(?m)^(0x[0-9a-f]{4}) (\d{3})(.*)$`).ReplaceAllStringFunc(s, func(line string) string {
			n++
			switch {
			case n%7 == 0:
				return line[:7] + "255" + line[10:]
			case n%11 == 0:
				return line[:7] + "001" + line[10:]
			case n%13 == 0:
				return line[:7] + "000" + line[10:]
			}
			return line
		})
	}
	edit("updn/opensm-lfts.dump", "broken", entries)
	edit("grid/opensm-lfts.dump", "grid-broken", entries)
	edit("updn/opensm.mcfdbs", "masks", func(s string) string {
		return regexp.MustCompile(`0x001`).ReplaceAllString(s, "0x002")
	})
}

// sayNames are commands that name nodes, and how many names each has to have at least.
var sayNames = []struct {
	least int
	args  string
}{
	{1, "compile -t tree -e updn --dry-run"}, {0, "compile -t worn -e fattree --dry-run"}, {1, "compile -t ring -e minhop --dry-run"},
	{0, "compile -t faulty -e xy --dry-run"}, {0, "compile -t faulty -e xy --repair --dry-run"}, {0, "compile -t tree -e xy --dry-run"}, {0, "compile -t ring -e layered --dry-run"},
	{1, "compile -t tree -e updn --format json --dry-run"}, {0, "compile -t mesh -e xy -g groups --mcast comb --dry-run"},
	{0, "compile -t worn -e updn --previous updn --dry-run"}, {0, "compile -t ring -e spam -g groups --mcast spam --dry-run"},
	{1, "check updn --wiring"}, {10, "check -t tree --lfts broken"}, {10, "check -t tree --lfts broken --format json"},
	{10, "check -t tree --lfts broken --format sarif"}, {10, "check -t tree --lfts broken --format junit"},
	{10, "check -t tree --lfts broken --format markdown"},
	{10, "check -t mesh --lfts grid-broken --policy generic --date 2026-01-01"},
	{4, "check loop"}, {4, "check loop --format sarif"}, {4, "check loop --format junit"}, {1, "check loop --copying wormhole"},
	{1, "check -t updn/fabric.ibnetdiscover --lfts updn/opensm-lfts.dump --mfts masks"}, {3, "check -t worn --wiring"}, {3, "check -t worn --policy policy --date 2026-01-01"},
	{3, "check -t worn --policy policy --date 2026-01-01 --format json"}, {1, "check -t worn --policy generic --date 2026-01-01"},
	{4, "diff updn other"}, {4, "diff -v updn other"}, {4, "diff updn other --format json"}, {4, "diff -v updn fat"}, {2, "diff tree worn"},
	{1, "drift updn --live broken"}, {1, "drift updn --live broken -v"}, {1, "drift updn --live broken --format json"}, {1, "drift updn --live masks -v"},
	{2, "compare -t tree -e updn,minhop --bisections 100"}, {2, "compare -t ring -e minhop --bisections 100"}, {2, "compare -t tree -e updn --format json --bisections 100"},
	{2, "whatif -t tree -e updn --fail links"}, {2, "whatif -t tree -e updn --fail switches"}, {2, "whatif -t tree -e updn --fail links --format json -o cases"}, {2, "whatif --merge cases"},
	{4, "sim loop --burst 4 --pattern all-to-all --buffer-packets 1"}, {4, "sim loop --burst 4 --pattern all-to-all --buffer-packets 1"},
	{4, "sim loop --burst 4 --pattern all-to-all --buffer-packets 1 --format json"},
	{1, "report updn --svg - --view path:0x100000,0x100006"}, {1, "report loop --svg - --view credit-loop"},
}

// guidAfter and guidBefore are what stands beside a name that is not unique.
var (
	guidAfter  = regexp.MustCompile(`^(?:\\*"|&#34;|&quot;)?(?: on top,|: the first are)?\s+\(?0x[0-9a-f]{16}`)
	guidBefore = regexp.MustCompile(`0x[0-9a-f]{16} (?:\\*"|&#34;|&quot;)?$`)
	jsonName   = regexp.MustCompile(`"(?:name|to_name|ToName)": ?"$`)
)

// unnamed lists places with a name that several nodes have and no GUID beside it, and
// counts the names. In JSON a member beside "name" has the GUID.
func unnamed(text string) (bad []string, names int) {
	for _, name := range []string{sameSwitch, sameHost} {
		for at := 0; ; {
			i := strings.Index(text[at:], name)
			if i < 0 {
				break
			}
			i += at
			at = i + len(name)
			names++
			before, after := text[max(0, i-40):i], text[at:min(len(text), at+60)]
			if jsonName.MatchString(before) {
				around := text[max(0, i-200):min(len(text), at+200)]
				if !regexp.MustCompile(`"(?:switch|node|guid|to|to_switch|fullyQualifiedName)": ?"0x[0-9a-f]{16}`).MatchString(around) {
					bad = append(bad, "no GUID in the object of "+before+name+after)
				}
				continue
			}
			if !guidAfter.MatchString(after) && !guidBefore.MatchString(before) {
				bad = append(bad, before+name+after)
			}
		}
	}
	return bad, names
}

// TestNamesHaveGUIDs: wherever a command names a node whose name others have too, the
// GUID stands beside it. With a map of unique names, no old name is printed.
func TestNamesHaveGUIDs(t *testing.T) {
	t.Chdir(t.TempDir())
	ibweave := func(args ...string) string {
		var out, errs bytes.Buffer
		if got := run(args, strings.NewReader(""), &out, &errs); got > exitFindings {
			t.Fatalf("ibweave %s: exit status %d\n%s", strings.Join(args, " "), got, &errs)
		}
		return out.String() + errs.String()
	}
	namedFabrics(t, ibweave)
	var names strings.Builder
	for _, f := range []string{"tree", "ring", "mesh"} {
		data := short.Must(os.ReadFile(f))(t)
		for _, m := range regexp.MustCompile(`"[SH]-([0-9a-f]{16})"\s+#`).FindAllSubmatch(data, -1) {
			if line := fmt.Sprintf("0x%s \"label %s\"\n", m[1], m[1][10:]); !strings.Contains(names.String(), line) {
				names.WriteString(line)
			}
		}
	}
	short.Check(t, os.WriteFile("names", []byte(names.String()), 0o666))
	short.Check(t, os.WriteFile("labels", []byte("groups:\n  - name: all\n    receivers: [\"re:^label 1\"]\n"), 0o666))
	// What compile writes does not depend on the names.
	ibweave("compile", "-t", "tree", "-e", "updn", "-g", "groups", "-o", "plain")
	ibweave("compile", "-t", "tree", "-e", "updn", "-g", "labels", "-o", "named", "--node-name-map", "names")
	if files, err := os.ReadDir("plain"); err != nil || len(files) < 5 {
		t.Fatalf("%v, %v", files, err)
	} else {
		for _, file := range files {
			a, errA := os.ReadFile("plain/" + file.Name())
			b, errB := os.ReadFile("named/" + file.Name())
			if errA != nil || errB != nil || !bytes.Equal(a, b) {
				t.Errorf("%s: another file with names: %v, %v", file.Name(), errA, errB)
			}
		}
	}
	for _, c := range sayNames {
		text := ibweave(strings.Fields(c.args)...)
		bad, n := unnamed(text)
		if n < c.least {
			t.Errorf("ibweave %s names %d nodes, want %d:\n%s", c.args, n, c.least, text[:min(len(text), 4000)])
		}
		for _, line := range bad[:min(len(bad), 5)] {
			t.Errorf("ibweave %s: a name and no GUID beside it: %q", c.args, line)
		}
		if strings.HasPrefix(c.args, "whatif --merge") {
			continue
		}
		args := strings.NewReplacer("-g groups", "-g labels", "-o cases", "-o labeled").Replace(c.args) + " --node-name-map names"
		text = ibweave(strings.Fields(args)...)
		if i := strings.Index(text, sameSwitch); i >= 0 {
			t.Errorf("ibweave %s: an old name: %q", args, text[max(0, i-60):min(len(text), i+60)])
		}
		if c.least > 0 && !strings.Contains(text, "label ") {
			t.Errorf("ibweave %s: no name of the map:\n%s", args, text[:min(len(text), 1000)])
		}
	}
}

// descriptions are the rooms and files that use node descriptions as such: they read and
// write texts, or compare what a device says of itself.
var descriptions = []string{
	"fabric/", "sminterface/dump/", "sminterface/ibdiagnet/", "sminterface/mad/", "sminterface/ibsim/", "cmd/ibweave-opensm/plugin/snapshot.go",
	"compile/outdir/files.go", "audit/diff/match.go", "audit/diff/nodes.go", "audit/cabling/cabling.go", "audit/cabling/plan/", "audit/session/base.go",
}

// TestDescriptions: all else calls nodes by fabric.Name, which has the GUID where several
// nodes have one name.
func TestDescriptions(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || slices.ContainsFunc(descriptions, func(at string) bool { return strings.HasPrefix(filepath.ToSlash(name), at) }) {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		for i, line := range strings.Split(string(data), "\n") {
			if strings.Contains(line, ".Description") {
				t.Errorf("%s:%d: a node description; want Fabric.Name or Fabric.PortName: %s", name, i+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil || seen < 100 {
		t.Errorf("%d files, %v", seen, err)
	}
}

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
	short.NeedPrograms(t)
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
