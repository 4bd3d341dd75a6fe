package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/internal/short"
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
