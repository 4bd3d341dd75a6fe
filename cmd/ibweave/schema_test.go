package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/cmd/cli"
	plugin "github.com/ibweave/ibweave/cmd/ibweave-opensm/plugin"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/umad"
)

// schemaFiles are the names of docs/schemas, without .schema.json.
var schemaFiles = sync.OnceValues(func() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(schemaDirectory, "*.schema.json")) // whatever the working directory is by now
	for i, name := range files {
		files[i] = strings.TrimSuffix(filepath.Base(name), ".schema.json")
	}
	return files, err
})

// schemaDirectory is where docs/schemas is, wherever the process works later.
var schemaDirectory, errSchemaDirectory = filepath.Abs("../../docs/schemas")

// compileSchema compiles a schema of docs/schemas, or a part of one behind #.
func compileSchema(name string) (*jsonschema.Schema, error) {
	files, err := schemaFiles()
	if err != nil || errSchemaDirectory != nil {
		return nil, fmt.Errorf("%v, %v", err, errSchemaDirectory)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	const at = "https://github.com/ibweave/ibweave/docs/schemas/"
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(schemaDirectory, file+".schema.json"))
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if err := c.AddResource(at+file+".schema.json", doc); err != nil {
			return nil, err
		}
	}
	file, part, _ := strings.Cut(name, "#")
	return c.Compile(at + file + ".schema.json#" + part)
}

var compiledSchemas sync.Map

// conforms says whether a document is what a schema says.
func conforms(name string, document []byte) error {
	s, ok := compiledSchemas.Load(name)
	if !ok {
		compiled, err := compileSchema(name)
		if err != nil {
			return err
		}
		s, _ = compiledSchemas.LoadOrStore(name, compiled)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err == nil {
		err = s.(*jsonschema.Schema).Validate(doc)
	}
	return err
}

func schemaOf(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	return short.Must(compileSchema(name))(t)
}

// schemaNames are the schemas of commands whose name is another one.
var schemaNames = map[string]string{"leave": "join"}

// schemaName is the schema of what a command line prints with --format json.
func schemaName(args []string) string {
	has := func(flag string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return a == flag || strings.HasPrefix(a, flag+"=") })
	}
	switch name := args[0]; {
	case name == "sim" && has("--traffic"):
		return "sim-traffic"
	case schemaNames[name] != "":
		return schemaNames[name]
	default:
		return name
	}
}

// printsJSON returns true if a command line asks for JSON.
func printsJSON(args []string) bool {
	i := slices.Index(args, "--format")
	return i >= 0 && i+1 < len(args) && args[i+1] == "json" || slices.Contains(args, "--format=json")
}

// wantSchema holds what a command line has printed to its schema.
func wantSchema(args []string, stdout string) error {
	if !printsJSON(args) || !strings.HasPrefix(stdout, "{") && !strings.HasPrefix(stdout, "[") {
		return nil
	}
	name := schemaName(args)
	if err := conforms(name, []byte(stdout)); err != nil {
		return fmt.Errorf("%s: not what docs/schemas/%s.schema.json says: %w", strings.Join(args, " "), name, err)
	}
	return nil
}

// Each command with --format json has a schema, and each schema is one of a command, of a part
// that several have, or of a file.
func TestEveryDocumentHasSchema(t *testing.T) {
	files := short.Must(schemaFiles())(t)
	used := map[string]bool{"host-groups": true, "manifest": true, "sim-traffic": true, "reproduce": true, "schedule": true} // the last two of ibweave-papers
	documents := 0
	for _, c := range (&app{}).rootCommand().Commands() {
		cli.Walk(c, func(c *cobra.Command) {
			f := c.LocalFlags().Lookup("format")
			if f == nil || !strings.Contains(f.Usage, "json") {
				return
			}
			documents++
			name := schemaName([]string{c.Name()})
			used[name] = true
			if !slices.Contains(files, name) {
				t.Errorf("%s prints JSON; want docs/schemas/%s.schema.json, and a document of it in TestSchemas", c.CommandPath(), name)
			}
		})
	}
	if documents < 18 {
		t.Errorf("%d commands print JSON, want 18 or more", documents)
	}
	for _, name := range files {
		if _, isFile := yamlFiles[strings.TrimPrefix(name, "file-")]; !used[name] && !isFile {
			t.Errorf("docs/schemas/%s.schema.json is of no command and no file", name)
		}
		s, err := compileSchema(name)
		if err != nil || s.Title == "" || s.Description == "" {
			t.Errorf("docs/schemas/%s.schema.json: %v; want a title and a description", name, err)
		}
	}
}

// Documents are what their schemas say, and the schemas take nothing else: no unknown member, and
// none of those that are required may lack.
func TestSchemas(t *testing.T) {
	short.NeedPrograms(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	example := func(name string) string { return "../../examples/" + name }
	ibweave := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	write := func(name, text string) string {
		t.Helper()
		short.Check(t, os.WriteFile(at(name), []byte(text), 0o600))
		return at(name)
	}
	tables, counted, grid := at("tables"), at("counted"), at("grid")
	groups := write("groups.yaml", "groups:\n  - name: all\n    receivers: [\"re:^host\"]\n")
	ibweave("compile", "-t", example("path/fabric.ibnetdiscover"), "-e", "updn", "--adaptive", "-o", tables)
	ibweave("compile", "-t", example("counters/fabric.ibnetdiscover"), "-e", "updn", "-o", counted)
	ibweave("gen", "mesh", "--dims", "3x3", "-o", at("mesh"))
	ibweave("gen", "mesh", "--dims", "3x3", "--drop-links", "1", "-o", at("less"))
	ibweave("compile", "-t", at("mesh"), "-e", "xy", "-g", groups, "-o", grid)
	ibweave("compile", "-t", at("less"), "-e", "updn", "-g", groups, "-o", at("less.d"))
	// A host with two rails exchanged.
	text := short.Must(os.ReadFile(example("rails/fabric.ibnetdiscover")))(t)
	broken := write("broken", strings.NewReplacer(`"node0003 mlx5_1"`, `"node0003 mlx5_2"`, `"node0003 mlx5_2"`, `"node0003 mlx5_1"`, `"node0006 mlx5_3"`, `"unknown"`).Replace(string(text)))
	traffic := example("traffic/")
	for name, args := range map[string][]string{
		"check":        {"check", tables, "--wiring"},
		"compare":      {"compare", "-t", traffic + "fabric.ibnetdiscover", "-e", "updn,minhop", "--bisections", "5", "--permutations", "5", "--shifts", "5", "--traffic", traffic + "traffic.yaml"},
		"compile":      {"compile", "-t", at("less"), "-g", groups, "--previous", at("less.d"), "--dry-run"},
		"compile/jobs": {"compile", "-t", traffic + "fabric.ibnetdiscover", "-e", "updn", "--dry-run", "--traffic", traffic + "traffic.yaml", "--adaptive"},
		"diff":         {"diff", grid, at("less.d"), "--fail-on", "never"},
		"drift":        {"drift", grid, "--live", at("less.d/mfts.dump"), "--live", grid + "/opensm-lfts.dump", "--fail-on", "never"},
		"sim":          {"sim", grid, "--load", "0.1", "--max-time", "20us"},
		"whatif":       {"whatif", "-t", at("mesh"), "-e", "updn", "--fail", "links"},
		"slurm":        {"slurm", "-t", example("slurm-topology/fabric.ibnetdiscover")},
		"rails":        {"rails", "-t", broken, "-e", "updn", "--fail-on", "never"},
		"path":         {"path", tables, "node0001", "node0009"},
		"counters":     {"counters", counted, example("counters/after.txt"), "--seconds", "60", "--host-groups", example("counters/groups.yaml")},
		"traffic":      {"traffic", "-t", traffic + "fabric.ibnetdiscover", "-e", "updn", "--traffic", traffic + "traffic.yaml"},
		"place":        {"place", "-t", example("place/fabric.ibnetdiscover"), "-e", "updn", "--hosts", "8", "--traffic", example("place/jobs.yaml")},
		"sim-traffic":  {"sim", "-t", traffic + "fabric.ibnetdiscover", "--engines", "updn,minhop", "--vls", "1,2", "--adaptive", "free", "--traffic", traffic + "traffic.yaml", "--scale", "0.001"},
		"drain":        {"drain", tables, "--switch", "spine00", "--cable", "leaf00:37"},
		"move":         {"move", "-t", example("move/fabric.ibnetdiscover"), "-e", "updn", example("move/edits.yaml"), "--at-once", "1"},
		"rehearse":     {"rehearse", tables},
	} {
		name, _, _ := strings.Cut(name, "/")
		short.Equal(t, schemaName(args), name, args, "is of schema")
		out, err := exec.Command(program, append(args, "--format", "json")...).Output()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		holdToSchema(t, name, out)
	}
	for name, file := range map[string]string{"manifest": grid + "/manifest.json", "file-groups": grid + "/groups.json"} {
		out := short.Must(os.ReadFile(file))(t)
		holdToSchema(t, name, out)
	}
	var list bytes.Buffer // this machine need not have a port
	form := cli.OutputForm{Format: "json"}
	short.Check(t, form.Print(&list, deviceDocument([]umad.PortInfo{{Device: "mlx5_0", Number: 1, GUID: 0x1234, LID: 5, State: "4: ACTIVE", LinkLayer: "InfiniBand", Rate: "100 Gb/sec (4X EDR)", Umad: "/dev/infiniband/umad0", Netdevs: []string{"ib0"}}}), nil))
	holdToSchema(t, "devices", list.Bytes())
}

// holdToSchema wants a document to be what a schema says, and neither with a member that is unknown
// nor without any one of its own that the schema requires.
func holdToSchema(t *testing.T, name string, document []byte) {
	t.Helper()
	if err := conforms(name, document); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var doc map[string]any
	if json.Unmarshal(document, &doc) != nil { // a list
		return
	}
	change := func(what string, edit func(map[string]any)) {
		edited := maps.Clone(doc)
		edit(edited)
		data := short.Must(json.Marshal(edited))(t)
		if conforms(name, data) == nil {
			t.Errorf("%s: the schema takes a document %s", name, what)
		}
	}
	if name != "check" && name != "slurm" { // which let others be added
		change("with a member that there is not", func(d map[string]any) { d["frobnicated"] = 1 })
	}
	s := schemaOf(t, name)
	for _, part := range append(s.AnyOf, s, s.Ref) {
		if part == nil {
			continue
		}
		for _, member := range part.Required {
			if _, has := doc[member]; has {
				change("without "+member, func(d map[string]any) { delete(d, member) })
			}
		}
	}
}

// yamlFiles are the files that people write, by their schemas: how to read one, and texts that
// neither the reader nor the schema takes.
var yamlFiles = map[string]struct {
	examples []string
	read     func(file string) (args []string) // a command that reads it, nil for the plugin
	more     []string                          // texts that both take
	bad      []string
}{
	"policy": {
		examples: []string{"audit-wiring/policy.yaml", "ci-gate/policy.yaml"},
		read: func(file string) []string {
			return []string{"check", "-t", "FABRIC", "--policy", file, "--date", "2026-01-01", "--fail-on", "never"}
		},
		more: []string{
			"topology: {generated: fattree radix 4, allow-missing: {cables: 1, at: [\"leaf 0[3]\"]}}\nlinks: {width: 4x, speed: hdr, hosts: {width: 1}}\n",
			"routing: {max-hops: 5, max-imbalance: 1.5, require: [minimal], roots: [0x200000]}\nseverities: {non-minimal: off}\nkinds: [\"service=nvme*\"]\n",
			"waivers: [{fingerprint: 0123456789abcdef, at: leaf, until: 2027-01-01, reason: RMA}]\n",
		},
		bad: []string{
			"topologies: {}\n", "topology: {expected: a, generated: fattree radix 4}\n", "routing: {max-hops: 0}\n", "routing: {require: [updn]}\n",
			"links: {width: 3}\n", "links: {speed: slow}\n", "severities: {non-minimal: bad}\n", "waivers: [{rule: non-minimal, reason: a}]\n",
			"waivers: [{until: 2027-01-01, reason: a}]\n", "kinds: [host]\n",
		},
	},
	"groups": {
		examples: []string{"multicast-mesh-5x5/groups.yaml", "banyan/groups.yaml", "simulation/groups.yaml"},
		read: func(file string) []string {
			return []string{"compile", "-t", "FABRIC", "-e", "updn", "--dry-run", "-g", file}
		},
		more: []string{"groups:\n  - {name: a, mgid: \"ff12:a01d:fe80::1\", mlid: 0xc001, receivers: [0x100001, \"re:^host\"], senders: [1], sl: 3}\n"},
		bad:  []string{"group: []\n", "groups: [{receivers: [1]}]\n", "groups: [{name: a}]\n", "groups: [{name: a, receivers: [1], sl: 16}]\n", "groups: [{name: a, receivers: [1], mlid: 7}]\n", "groups: 7\n"},
	},
	"host-groups": {
		examples: []string{"host-groups/groups.yaml", "counters/groups.yaml"},
		read: func(file string) []string {
			return []string{"check", "-t", "FABRIC", "--wiring", "--host-groups", file}
		},
		more: []string{"rack: {r1: \"n[1-4]\", r2: [n5, \"@r1\"]}\nrow: re:^(h)\nhost-regexp: ^(\\S+)\n"},
		bad:  []string{"rack: n1\n", "rack: [n1]\n", "\"a b\": {r: n1}\n", "{}\n", "rack: {r: {x: n1}}\n"},
	},
	"traffic": {
		examples: []string{"traffic/traffic.yaml", "place/jobs.yaml"},
		read:     func(file string) []string { return []string{"traffic", "-t", "FABRIC", "--traffic", file} },
		more: []string{
			"background: 0.1\njobs: [{name: a, hosts: \"H0\", patterns: [{pattern: alltoall, size: 64K, weight: 2}]}]\n",
			"jobs: [{name: a, hosts: [\"H0\", \"H1\"], ranks-per-host: 2, order: cyclic, patterns: [{pattern: to-storage, size: 1.5M, to: \"H2\"}]}]\n",
		},
		bad: []string{
			"jobs: []\n", "background: 1\njobs: [{name: a, hosts: h, patterns: [{pattern: alltoall, size: 1}]}]\n", "jobs: [{name: a, patterns: [{pattern: alltoall, size: 1}]}]\n",
			"jobs: [{name: a, hosts: h, patterns: []}]\n", "jobs: [{name: a, hosts: h, patterns: [{pattern: alltoall}]}]\n",
			"jobs: [{name: a, hosts: h, patterns: [{pattern: alltoall, size: big}]}]\n", "jobs: [{name: a, hosts: h, order: cyclic, patterns: [{pattern: alltoall, size: 1}]}]\n",
			"jobs: [{name: background, hosts: h, patterns: [{pattern: alltoall, size: 1}]}]\n", "jobs: [{name: a, hosts: h, group: g, patterns: [{pattern: alltoall, size: 1}]}]\n",
		},
	},
	"edits": {
		examples: []string{"move/edits.yaml"},
		read:     func(file string) []string { return []string{"move", "-t", "FABRIC", "-e", "updn", file} },
		more:     []string{"steps: [['unplug \"LEAF\":3', add switch new 4, 'plug new:1 \"LEAF\":3']]\n"},
		bad:      []string{"edits: [frob a:1]\n", "edits: [remove a]\nsteps: []\n", "edits: remove a\n", "steps: [remove a]\n"},
	},
	"plugin": {
		examples: []string{"../cmd/ibweave-opensm/ibweave.yaml"},
		more: []string{
			"roots: [0x0002c90000000001]\norigin: 0x1\ndims: 4x4\nno-wrap: true\nvls: 4\nsl2vl: spread\ntimeout: 5m\nlabels: /a\nmulticast: {scheme: union}\n",
			"metrics: {file: /a}\nlog:\nrebalance: 1.5\nflap: {count: 3, hold: 20m}\n", "roots: balanced\n",
		},
		bad: []string{"root: []\n", "roots: best\n", "vls: 3\n", "verify: maybe\n", "labels: relative\n", "log: {level: loud}\n", "incremental: perhaps\n", "rebalance: 0.5\n", "multicast: {balance: 3}\n", "flap: {count: -1}\n", "flap: 3\n"},
	},
}

// yamlValue is a YAML text as JSON has it: days are text.
func yamlValue(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var plain func(v any) any
	plain = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k := range v {
				v[k] = plain(v[k])
			}
		case []any:
			for i := range v {
				v[i] = plain(v[i])
			}
		case time.Time:
			return v.Format(time.DateOnly)
		}
		return v
	}
	data := short.Must(json.Marshal(plain(v)))(t)
	return short.Must(jsonschema.UnmarshalJSON(bytes.NewReader(data)))(t)
}

// The schemas of files take what the program takes, and refuse what it refuses.
func TestFileSchemas(t *testing.T) {
	short.NeedPrograms(t)
	dir := t.TempDir()
	fabricFile := filepath.Join(dir, "fabric")
	if out, err := exec.Command(program, "gen", "fattree", "--radix", "4", "-o", fabricFile).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	names := strings.NewReplacer("FABRIC", fabricFile, "H0", "host 0 leaf 0", "H1", "host 1 leaf 0", "H2", "host 0 leaf 1", "LEAF", "leaf 0")
	for kind, files := range yamlFiles {
		s := schemaOf(t, "file-"+kind)
		for _, name := range files.examples {
			text := short.Must(os.ReadFile("../../examples/" + name))(t)
			if err := s.Validate(yamlValue(t, text)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		takes := func(text string) error {
			file := filepath.Join(dir, kind+".yaml")
			short.Check(t, os.WriteFile(file, []byte(text), 0o600))
			if files.read == nil {
				_, err := plugin.ParseConfig(file, []byte(text))
				return err
			}
			args := files.read(file)
			for i := range args {
				args[i] = names.Replace(args[i])
			}
			var errs bytes.Buffer
			if status := run(args, strings.NewReader(""), &bytes.Buffer{}, &errs); status >= exitUsage {
				return fmt.Errorf("exit status %d: %s", status, &errs)
			}
			return nil
		}
		for _, text := range files.more {
			text = names.Replace(text)
			if err := takes(text); err != nil {
				t.Errorf("%s: the program refuses %s: %v", kind, text, err)
			}
			if err := s.Validate(yamlValue(t, []byte(text))); err != nil {
				t.Errorf("%s: the schema refuses %s: %v", kind, text, err)
			}
		}
		for _, text := range files.bad {
			if takes(text) == nil {
				t.Errorf("%s: the program takes %s", kind, text)
			}
			if s.Validate(yamlValue(t, []byte(text))) == nil {
				t.Errorf("%s: the schema takes %s", kind, text)
			}
		}
	}
}

// Recipes of docs/schemas/README.md print what the page says, with the real jq.
func TestRecipes(t *testing.T) {
	short.NeedAll(t)
	text := short.Must(os.ReadFile("../../docs/schemas/README.md"))(t)
	if n := bytes.Count(text, []byte("\n")); n > 60 {
		t.Errorf("docs/schemas/README.md has %d lines, want at most 60", n)
	}
	_, block, _ := strings.Cut(string(text), "```console\n")
	block, _, _ = strings.Cut(block, "```\n")
	dir := t.TempDir()
	recipes := 0
	for step := range strings.SplitSeq("\n"+block, "\n$ ") {
		command, want, _ := strings.Cut(step, "\n")
		if strings.HasPrefix(step, "\n#") || strings.HasPrefix(step, "#") {
			continue // the first comment
		}
		want, _, _ = strings.Cut(want+"\n", "\n# ")
		cmd := exec.Command("bash", "-c", "set -o pipefail; "+command)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != strings.TrimSpace(want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", command, err, out, want)
		}
		if strings.Contains(command, "| jq ") {
			recipes++
		}
	}
	if recipes < 9 {
		t.Errorf("%d recipes, want 9 or more", recipes)
	}
}
