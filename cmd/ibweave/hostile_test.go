package main

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/state/open"
)

// inputs are the command lines by what reads a file: a flag of a command, or the
// arguments of the command. X is the hostile file, D a directory that compile wrote, H
// another one whose manifest is X, NEW a folder that is not there.
var inputs = map[string]string{
	"check arguments":          "check H",
	"check --topology":         "check -t X --lfts D/opensm-lfts.dump",
	"check --lfts":             "check -t D/fabric.ibnetdiscover --lfts X",
	"check --sl2vl":            "check -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --sl2vl X",
	"check --path-sl":          "check -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --sl2vl D/opensm-sl2vl.dump --path-sl X",
	"check --far":              "check -t D/fabric.ibnetdiscover --far X",
	"check --plft":             "check -t D/fabric.ibnetdiscover --far D/ibdiagnet2.far --plft X",
	"check --mfts":             "check -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --mfts X -g D/groups.json",
	"check --groups":           "check -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --mfts D/opensm.mcfdbs -g X",
	"check --bound":            "check D --bound X",
	"check --certificate":      "check D --certificate X",
	"check --plan":             "check -t D/fabric.ibnetdiscover --plan X",
	"check --policy":           "check D --policy X",
	"check --pkeys":            "check -t D/fabric.ibnetdiscover --pkeys X",
	"check --partitions":       "check -t D/fabric.ibnetdiscover --partitions X",
	"check --node-name-map":    "check D --node-name-map X",
	"check --source":           "check D --format sarif --source X",
	"compare --topology":       "compare -t X -e updn",
	"compare --lfts":           "compare -t D/fabric.ibnetdiscover --lfts X",
	"compare --opensm-conf":    "compare -t D/fabric.ibnetdiscover -e opensm:minhop --bisections 0 --opensm-conf X",
	"compare --traffic":        "compare -t D/fabric.ibnetdiscover -e updn --bisections 0 --traffic X",
	"compare --roots":          "compare -t D/fabric.ibnetdiscover -e updn --roots X",
	"compile --topology":       "compile -t X -e updn --dry-run",
	"compile --guid2lid":       "compile -t D/fabric.ibnetdiscover -e updn --dry-run --guid2lid X",
	"compile --previous":       "compile -t D/fabric.ibnetdiscover -e xy --dry-run --previous H",
	"compile --groups":         "compile -t D/fabric.ibnetdiscover -e xy --dry-run -g X",
	"check --traffic":          "check D --traffic X",
	"compile --traffic":        "compile -t D/fabric.ibnetdiscover -e updn --dry-run --traffic X",
	"compile --roots":          "compile -t D/fabric.ibnetdiscover -e updn --dry-run --roots X",
	"diff arguments":           "diff D X",
	"diff --topology":          "diff D/opensm-lfts.dump D/opensm-lfts.dump -t X",
	"drift arguments":          "drift H --live D/opensm-lfts.dump",
	"drift --live":             "drift D --live X",
	"whatif arguments":         "whatif --merge X",
	"compile arguments":        "compile X -e updn --dry-run",
	"compare arguments":        "compare X -e updn --bisections 5",
	"plan arguments":           "plan X",
	"plan --node-name-map":     "plan D/fabric.ibnetdiscover --node-name-map X",
	"rehearse arguments":       "rehearse H",
	"rehearse --topology":      "rehearse -t X --lfts D/opensm-lfts.dump",
	"rehearse --lfts":          "rehearse -t D/fabric.ibnetdiscover --lfts X",
	"rehearse --sl2vl":         "rehearse -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --sl2vl X",
	"rehearse --path-sl":       "rehearse -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --sl2vl D/opensm-sl2vl.dump --path-sl X",
	"report arguments":         "report H -o /dev/null",
	"report --topology":        "report -t X -o /dev/null",
	"report --lfts":            "report -t D/fabric.ibnetdiscover --lfts X -o /dev/null",
	"report --far":             "report -t D/fabric.ibnetdiscover --far X -o /dev/null",
	"report --plft":            "report -t D/fabric.ibnetdiscover --far D/ibdiagnet2.far --plft X -o /dev/null",
	"report --sl2vl":           "report -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --sl2vl X -o /dev/null",
	"report --path-sl":         "report -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --sl2vl D/opensm-sl2vl.dump --path-sl X -o /dev/null",
	"report --mfts":            "report -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --mfts X -o /dev/null",
	"report --groups":          "report -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --mfts D/opensm.mcfdbs -g X -o /dev/null",
	"report --plan":            "report -t D/fabric.ibnetdiscover --plan X -o /dev/null",
	"report --policy":          "report D --policy X -o /dev/null",
	"report --node-name-map":   "report D --node-name-map X -o /dev/null",
	"sim arguments":            "sim H --load 0.1",
	"sim --topology":           "sim -t X --lfts D/opensm-lfts.dump --load 0.1",
	"sim --lfts":               "sim -t D/fabric.ibnetdiscover --lfts X --load 0.1",
	"sim --sl2vl":              "sim -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --sl2vl X --load 0.1",
	"sim --path-sl":            "sim -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --sl2vl D/opensm-sl2vl.dump --path-sl X --load 0.1",
	"sim --mfts":               "sim -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --mfts X -g D/groups.json --load 0.1",
	"sim --far":                "sim -t D/fabric.ibnetdiscover --far X --load 0.1",
	"sim --plft":               "sim -t D/fabric.ibnetdiscover --far D/ibdiagnet2.far --plft X --load 0.1",
	"sim --groups":             "sim -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --mfts D/opensm.mcfdbs -g X --load 0.1",
	"sim --rank-file":          "sim D --load 0.1 --rank-file X",
	"sim --traffic":            "sim D --traffic X",
	"sim --host-groups":        "sim D --traffic D/traffic.yaml --host-groups X",
	"compare --node-name-map":  "compare -t D/fabric.ibnetdiscover -e updn --node-name-map X",
	"compile --node-name-map":  "compile -t D/fabric.ibnetdiscover -e updn --dry-run --node-name-map X",
	"diff --node-name-map":     "diff D D --node-name-map X",
	"discover --node-name-map": "discover --ibsim --node-name-map X",
	"drift --node-name-map":    "drift D --live D/opensm-lfts.dump --node-name-map X",
	"pull --node-name-map":     "pull --ibsim -o NEW --node-name-map X",
	"rehearse --node-name-map": "rehearse D --node-name-map X",
	"rehearse --traffic":       "rehearse D --via plugin --traffic X",
	"sim --node-name-map":      "sim D --load 0.1 --node-name-map X",
	"drain arguments":          "drain H --switch 0x0000000000200000",
	"drain --node-name-map":    "drain D --switch 0x0000000000200000 --node-name-map X",
	"move arguments":           "move D X",
	"move --topology":          "move -t X -e updn D/fabric.ibnetdiscover",
	"move --node-name-map":     "move D D/fabric.ibnetdiscover --node-name-map X",
	"path arguments":           "path H n1 n2",
	"path --topology":          "path -t X --lfts D/opensm-lfts.dump n1 n2",
	"path --lfts":              "path -t D/fabric.ibnetdiscover --lfts X --all-from 0x0000000000100000",
	"path --sl2vl":             "path -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --sl2vl X --all-from 0x0000000000100000",
	"path --path-sl":           "path -t D/fabric.ibnetdiscover --lfts D/opensm-lfts.dump --sl2vl D/opensm-sl2vl.dump --path-sl X --all-from 0x0000000000100000",
	"path --far":               "path -t D/fabric.ibnetdiscover --far X --all-from 0x0000000000100000",
	"path --plft":              "path -t D/fabric.ibnetdiscover --far D/ibdiagnet2.far --plft X --all-from 0x0000000000100000",
	"path --ibtracert":         "path D --ibtracert X",
	"path --node-name-map":     "path D --node-name-map X --all-from 0x0000000000100000",
	"rails arguments":          "rails H",
	"rails --topology":         "rails -t X",
	"rails --lfts":             "rails -t D/fabric.ibnetdiscover --lfts X",
	"rails --far":              "rails -t D/fabric.ibnetdiscover --far X",
	"rails --plft":             "rails -t D/fabric.ibnetdiscover --far D/ibdiagnet2.far --plft X",
	"rails --node-name-map":    "rails D --node-name-map X",
	"counters arguments":       "counters D X",
	"counters --topology":      "counters -t X --lfts D/opensm-lfts.dump D/perfquery",
	"counters --lfts":          "counters -t D/fabric.ibnetdiscover --lfts X D/perfquery",
	"counters --before":        "counters D D/perfquery --before X",
	"counters --host-groups":   "counters D D/perfquery --host-groups X",
	"counters --node-name-map": "counters D D/perfquery --node-name-map X",
	"report --counters":        "report D -o /dev/null --counters X",
	"report --traffic":         "report D -o /dev/null --traffic X",
	"report --host-groups":     "report D -o /dev/null --host-groups X",
	"report --compiler":        "report D -o /dev/null --interactive --compiler X",
	"report --before":          "report D -o /dev/null --counters D/perfquery --before X",
	"traffic arguments":        "traffic H --traffic D/traffic.yaml",
	"traffic --topology":       "traffic -t X --traffic D/traffic.yaml",
	"traffic --lfts":           "traffic -t D/fabric.ibnetdiscover --lfts X --traffic D/traffic.yaml",
	"traffic --far":            "traffic -t D/fabric.ibnetdiscover --far X --traffic D/traffic.yaml",
	"traffic --plft":           "traffic -t D/fabric.ibnetdiscover --far D/ibdiagnet2.far --plft X --traffic D/traffic.yaml",
	"traffic --traffic":        "traffic D --traffic X",
	"traffic --host-groups":    "traffic D --traffic D/traffic.yaml --host-groups X",
	"traffic --node-name-map":  "traffic D --traffic D/traffic.yaml --node-name-map X",
	"place arguments":          "place H --hosts 2",
	"place --topology":         "place -t X -e updn --hosts 2",
	"place --lfts":             "place -t D/fabric.ibnetdiscover --lfts X --hosts 2",
	"place --far":              "place -t D/fabric.ibnetdiscover --far X --hosts 2",
	"place --plft":             "place -t D/fabric.ibnetdiscover --far D/ibdiagnet2.far --plft X --hosts 2",
	"place --traffic":          "place D --hosts 2 --traffic X",
	"place --slurm":            "place D --hosts 2 --slurm X",
	"place --host-groups":      "place D --hosts 2 --host-groups X",
	"place --node-name-map":    "place D --hosts 2 --node-name-map X",
	"slurm --topology":         "slurm -t X",
	"slurm --node-name-map":    "slurm -t D/fabric.ibnetdiscover --host-regexp .* --node-name-map X",
	"whatif --node-name-map":   "whatif -t D/fabric.ibnetdiscover -e updn --fail links --node-name-map X",
	"whatif --topology":        "whatif -t X -e updn --fail links",
	"check --host-groups":      "check D --host-groups X",
	"compare --host-groups":    "compare -t D/fabric.ibnetdiscover -e updn --bisections 0 --host-groups X",
	"compile --host-groups":    "compile -t D/fabric.ibnetdiscover -e updn --dry-run --without a --host-groups X",
	"diff --host-groups":       "diff D D --host-groups X",
	"drain --host-groups":      "drain D --host-group a --host-groups X",
	"whatif --host-groups":     "whatif -t D/fabric.ibnetdiscover -e updn --fail switches --host-groups X",
	"whatif --roots":           "whatif -t D/fabric.ibnetdiscover -e updn --fail links --roots X",
}

// outputs are the command lines by the flag that names a file to write, X, or a folder F
// of files, in which the file behind it is X.
var outputs = map[string]string{
	"check --report":        "check D --report json=X",
	"check --write-bound":   "check D --write-bound X",
	"compile --write-bound": "compile -t D/fabric.ibnetdiscover -e updn --dry-run --write-bound X",
	"discover --output":     "discover --ibsim -o X",
	"gen --output":          "gen mesh --dims 3x3 -o X",
	"move --write-plan":     "move D D/fabric.ibnetdiscover --write-plan X",
	"plan --output":         "plan D/fabric.ibnetdiscover -o X",
	"report --output":       "report D -o X",
	"report --svg":          "report D -o /dev/null --svg X",
	"report --png":          "report D -o /dev/null --png X",
	"slurm --output":        "slurm -t D/fabric.ibnetdiscover --host-regexp .* -o X",
	"sim --output":          "sim D --load 0.1 --max-time 20us -o X",
	"sim --svg":             "sim D --adaptive free --burst 1 --svg X",
	"sim --png":             "sim D --adaptive free --burst 1 --png X",
	"whatif --output":       "whatif -t D/fabric.ibnetdiscover -e updn --fail links -o X",

	"pull --output": "pull --ibsim -o F/opensm-lfts.dump",
	"man --output":  "man -o F/ibweave-gen.1",
}

// otherFiles are flags that name no file that ibweave reads or writes as a whole.
var otherFiles = map[string]string{
	"move --output":         "directories that appear at once, of regular files",
	"drain --output":        "directories that appear at once, of regular files",
	"compile --output":      "a directory that appears at once, of regular files",
	"path --mfts":           "path follows unicast, and does not read it",
	"report --title":        "text",
	"compile --install-dir": "a name that is written into opensm.conf",
	"rehearse --mfts":       "files carry no masks, so that it is not read",
	"rehearse --plugin":     "a library, which OpenSM loads",
}

// namesFile tells flags and arguments that name files by their help.
var namesFile = regexp.MustCompile(`\b(FILE|TOPOLOGY|DIR|PATH|OLD)\b|\ba (file|directory|folder) `)

// Every flag and every argument that names a file is in one of the tables.
func TestFilesListed(t *testing.T) {
	var found []string
	cli.Walk((&app{}).rootCommand(), func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "ibweave ")
		use, _, _ := strings.Cut(strings.NewReplacer(" -t FILE", "", " -t TOPOLOGY", "", " -o DIR", "", "--lfts FILE", "").Replace(c.Use), "--live")
		if namesFile.MatchString(use) {
			found = append(found, name+" arguments")
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if what, usage := pflag.UnquoteUsage(f); namesFile.MatchString(what + " " + usage + " ") {
				found = append(found, name+" --"+f.Name)
			}
		})
	})
	for _, name := range found {
		n := 0
		for _, table := range []map[string]string{inputs, outputs, otherFiles} {
			if table[name] != "" {
				n++
			}
		}
		short.Equal(t, n, 1, name, "is in of the tables inputs, outputs and otherFiles")
	}
	for _, table := range []map[string]string{inputs, outputs, otherFiles} {
		for name := range table {
			if !slices.Contains(found, name) {
				t.Errorf("%s is in a table and names no file", name)
			}
		}
	}
}

// tables compiles a mesh with all files that there are, for the letter D of the tables.
func tables(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	groups := filepath.Join(dir, "groups.yaml")
	short.Check(t, os.WriteFile(groups, []byte("groups: [{name: all, receivers: ['re:.'], senders: ['re:.']}]\n"), 0o600))
	d := filepath.Join(dir, "D")
	for _, line := range []string{"gen mesh --dims 2x3 -o F", "compile -t F -e xy --vls 2 --sl2vl spread --path-sl -g G -o D",
		"whatif -t F -e updn --fail links -o D/whatif.json"} {
		line = strings.NewReplacer("F", filepath.Join(dir, "F"), "G", groups, "D", d).Replace(line)
		var out, errs bytes.Buffer
		if got := run(strings.Fields(line), nil, &out, &errs); got != exitClean {
			t.Fatalf("%s: exit status %d, %s", line, got, &errs)
		}
	}
	writeFAR(t, d)
	for name, text := range map[string]string{"traffic.yaml": "jobs: [{name: a, hosts: '0x100000,0x100002', patterns: [{pattern: alltoall, size: 1M}]}]\n", "perfquery": "# Port counters: Lid 1 port 1\nPortSelect:......................1\nPortXmitData:....................1\n"} {
		short.Check(t, os.WriteFile(filepath.Join(d, name), []byte(text), 0o600))
	}
	return d
}

// writeFAR writes the tables of a compiled directory as adaptive routing without a choice.
func writeFAR(t *testing.T, d string) {
	t.Helper()
	a := &app{stderr: io.Discard}
	f, tables, err := a.readTables(&audit{Input: open.Input{Files: open.Files{Topology: filepath.Join(d, "fabric.ibnetdiscover"), LFTs: filepath.Join(d, "opensm-lfts.dump")}}})
	short.Check(t, err)
	var b bytes.Buffer
	x := &adaptive.Tables{Groups: make([][]adaptive.Group, f.NumSwitches()), PLFTs: []*adaptive.PLFT{adaptive.NewPLFT(tables)}}
	short.Check(t, errors.Join(dump.WriteFAR(&b, f, x, dump.WriteOptions{}), os.WriteFile(filepath.Join(d, "ibdiagnet2.far"), b.Bytes(), 0o666)))
}

// inputArgs makes arguments of a line of inputs. X is the manifest of h.
func inputArgs(line, d, h string) (args []string) {
	for _, arg := range strings.Fields(line) {
		switch first, rest, _ := strings.Cut(arg, "/"); first {
		case "D":
			arg = filepath.Join(d, rest)
		case "H":
			arg = h
		case "X":
			arg = filepath.Join(h, "manifest.json")
		case "NEW":
			arg = filepath.Join(h, "new")
		}
		args = append(args, arg)
	}
	return args
}

// finished is how a process ended.
type finished struct {
	status int // -1 for a signal
	stdout []byte
	stderr string
}

// runProgram runs the program as a process. Without stdout the result has what it prints.
func runProgram(t *testing.T, stdout io.Writer, environment []string, args ...string) finished {
	t.Helper()
	return runCommand(t, stdout, environment, append([]string{"ibweave"}, args...)...)
}

// runWithin runs the program as a process to which the kernel gives at most that many bytes
// of memory for data (RLIMIT_DATA); with more it dies of a fatal error, exit status 2.
// The limit is the process' own: what the parent reads of a child after its end (Maxrss)
// also has the parent's memory at the fork.
func runWithin(t *testing.T, most int64, args ...string) finished {
	t.Helper()
	limit := fmt.Sprintf(`ulimit -d %d; exec ibweave "$@"`, most>>10)
	return runCommand(t, nil, []string{"GOMAXPROCS=2"}, append([]string{"sh", "-c", limit, "sh"}, args...)...)
}

func runCommand(t *testing.T, stdout io.Writer, environment []string, command ...string) finished {
	t.Helper()
	short.NeedPrograms(t)
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), environment...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = stdout, &errs
	if stdout == nil {
		cmd.Stdout = &out
	}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return finished{cmd.ProcessState.ExitCode(), out.Bytes(), errs.String()}
}

// bomb is a number of times 64 MiB of zeros, compressed.
func bomb(t *testing.T, open func(io.Writer) (io.WriteCloser, error), times int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := short.Must(open(&b))(t)
	short.Must(w.Write(make([]byte, 64<<20)))(t)
	short.Check(t, w.Close())
	return bytes.Repeat(b.Bytes(), times)
}

// Nothing that a command reads takes its memory or its time: bombs of zstd and gzip, a
// stream without an end and a huge sparse file are told in one line. A topology meets all of
// them, each other input one, of which make test has a third, since package files opens all alike.
func TestHostileInput(t *testing.T) {
	short.NeedPrograms(t)
	const most = 1 << 30
	d := tables(t)
	simulated(t, d)
	dir := t.TempDir()
	hostile := map[string]func(name string) error{
		"zstd bomb": func(name string) error {
			return os.WriteFile(name, bomb(t, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }, 128), 0o600)
		},
		"gzip bomb": func(name string) error {
			return os.WriteFile(name, bomb(t, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, gzip.BestSpeed) }, 32), 0o600)
		},
		"tar bomb": func(name string) error {
			var head bytes.Buffer
			if err := tar.NewWriter(&head).WriteHeader(&tar.Header{Name: "x", Size: 8 << 30, Mode: 0o600}); err != nil {
				return err
			}
			var packed bytes.Buffer
			z, err := zstd.NewWriter(&packed)
			if err != nil {
				return err
			}
			if _, err := z.Write(head.Bytes()); err != nil {
				return err
			}
			if err := z.Close(); err != nil {
				return err
			}
			zeros := bomb(t, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }, 128)
			return os.WriteFile(name, append(packed.Bytes(), zeros...), 0o600)
		},
		"endless": func(name string) error {
			if err := syscall.Mkfifo(name, 0o600); err != nil {
				return err
			}
			f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NONBLOCK, 0) // waits for no reader
			if err != nil {
				return err
			}
			t.Cleanup(func() { f.Close() })
			go func() {
				for block := make([]byte, 1<<20); ; {
					if _, err := f.Write(block); err != nil {
						return
					}
				}
			}()
			return nil
		},
		"sparse": func(name string) error {
			f, err := os.Create(name)
			if err != nil {
				return err
			}
			return errors.Join(f.Truncate(256<<30), f.Close())
		},
	}
	names := slices.Sorted(maps.Keys(inputs))
	for k, kind := range slices.Sorted(maps.Keys(hostile)) {
		make := hostile[kind]
		t.Run(kind, func(t *testing.T) {
			h := filepath.Join(dir, kind)
			short.Check(t, os.Mkdir(h, 0o700))
			x := filepath.Join(h, "manifest.json")
			short.Check(t, make(x))
			for i, name := range names {
				if name != "check --topology" && i%(short.Usual(1, 3)*len(hostile)) != k {
					continue
				}
				line := inputs[name]
				got := runWithin(t, most, inputArgs(line, d, h)...)
				lines := strings.Split(strings.TrimSuffix(got.stderr, "\n"), "\n")
				if got.status != exitInput || len(lines) != 1 || !strings.HasPrefix(got.stderr, "ibweave: ") || !strings.Contains(got.stderr, x) {
					t.Errorf("%s: exit status %d\n%s", name, got.status, got.stderr)
				}
			}
		})
	}
}

// simulated runs ibsim on the fabric of D, for commands that ask a live one.
func simulated(t *testing.T, d string) {
	t.Helper()
	name := filepath.Join(d, "fabric.ibnetdiscover")
	text := short.Must(os.ReadFile(name))(t)
	f, _ := short.Must2(topology.Parse(name, text, topology.Options{}))(t)
	sim, twin := ibsimtest.Start(t, f)
	c, err := sim.Dial(t.Context(), "") // it listens when a client has been taken
	short.Check(t, err)
	short.Check(t, c.Close())
	t.Setenv("IBSIM_SOCKNAME", sim.Socket())
	t.Setenv("SIM_HOST", twin.NodeID(ibsim.Centre(twin.Fabric)))
}

// makeDevice makes a character device of the test's own, which only root may; for others
// it links to the system's, which they cannot replace.
func makeDevice(name string, minor int) error {
	err := syscall.Mknod(name, syscall.S_IFCHR|0o666, 1<<8|minor)
	if err == nil {
		f, opened := os.OpenFile(name, os.O_WRONLY, 0)
		if opened == nil {
			return f.Close()
		}
		if err := os.Remove(name); err != nil { // a file system without devices
			return err
		}
	}
	return os.Symlink(map[int]string{3: "/dev/null", 7: "/dev/full"}[minor], name)
}

// Every command writes into devices and FIFOs, follows links, and keeps the mode and the
// owner of a file.
func TestHostileOutput(t *testing.T) {
	short.NeedPrograms(t)
	d := tables(t)
	simulated(t, d)
	for _, name := range short.Keys(outputs, "gen --output") {
		line := outputs[name]
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			kind := func(kind string) (x string, args []string) {
				folder := filepath.Join(dir, kind)
				x = filepath.Join(folder, "X")
				for _, arg := range strings.Fields(line) {
					switch first, rest, _ := strings.Cut(arg, "/"); {
					case first == "D":
						arg = filepath.Join(d, rest)
					case first == "F":
						x, arg = filepath.Join(folder, rest), folder
					default:
						arg = strings.Replace(arg, "X", x, 1)
					}
					args = append(args, arg)
				}
				short.Check(t, os.MkdirAll(filepath.Dir(x), 0o700))
				return x, args
			}
			check := func(got finished, status int, kind string) {
				t.Helper()
				if got.status != status {
					t.Errorf("%s: exit status %d, want %d\n%s", kind, got.status, status, got.stderr)
				}
			}
			x, args := kind("new")
			usual := runProgram(t, nil, nil, args...)
			if usual.status != exitClean && usual.status != exitFindings {
				t.Fatalf("exit status %d: %s", usual.status, usual.stderr)
			}
			text, err := os.ReadFile(x)
			if err != nil || len(text) == 0 {
				t.Fatalf("%d bytes, %v", len(text), err)
			}

			for device, minor := range map[string]int{"null": 3, "full": 7} {
				x, args = kind(device)
				short.Check(t, makeDevice(x, minor))
				got := runProgram(t, nil, nil, args...)
				if device == "null" {
					check(got, usual.status, device)
				} else if check(got, exitEnvironment, device); strings.Count("\n"+got.stderr, "\nibweave: ") != 1 || !strings.Contains(got.stderr, "no space left") {
					t.Errorf("a full disk: %s", got.stderr)
				}
				if info, err := os.Stat(x); err != nil || info.Mode()&os.ModeCharDevice == 0 {
					t.Errorf("%s is no device: %v, %v", device, info.Mode(), err)
				}
			}

			x, args = kind("fifo")
			short.Check(t, syscall.Mkfifo(x, 0o600))
			fifo, err := os.OpenFile(x, os.O_RDWR, 0) // no end of file: it ends with a mark
			short.Check(t, err)
			const mark = "\x00the end\x00"
			read := make(chan []byte)
			go func() {
				var data []byte
				for block := make([]byte, 64<<10); !bytes.HasSuffix(data, []byte(mark)); {
					n, err := fifo.Read(block)
					if data = append(data, block[:n]...); err != nil {
						break
					}
				}
				read <- bytes.TrimSuffix(data, []byte(mark))
			}()
			check(runProgram(t, nil, nil, args...), usual.status, "FIFO")
			if _, err := fifo.WriteString(mark); err != nil {
				t.Error(err)
			}
			if data := <-read; len(data) == 0 || !bytes.Equal(data[:1], text[:1]) {
				t.Errorf("the reader of a FIFO has %d bytes, %.20q", len(data), data)
			}
			if err := fifo.Close(); err != nil {
				t.Error(err)
			}

			x, args = kind("link")
			end := filepath.Join(dir, "end")
			uid, gid := os.Getuid(), os.Getgid()
			if uid == 0 {
				uid, gid = 12345, 54321
			}
			short.Check(t, errors.Join(os.WriteFile(end, []byte("old"), 0o600), os.Chown(end, uid, gid), os.Chmod(end, 0o640), os.Symlink(end, x)))
			check(runProgram(t, nil, nil, args...), usual.status, "link")
			info := short.Must(os.Stat(end))(t)
			if is := info.Sys().(*syscall.Stat_t); info.Mode() != 0o640 || int(is.Uid) != uid || int(is.Gid) != gid || info.Size() <= 3 {
				t.Errorf("%d bytes of mode %v and owner %d:%d; want all with -rw-r----- and %d:%d", info.Size(), info.Mode(), is.Uid, is.Gid, uid, gid)
			}
			if info, err := os.Lstat(x); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("the link is %v, %v", info.Mode(), err)
			}
		})
	}
}

// A command that cannot say what it has to say fails, in one line. A reader that has gone
// ends it without a word, as it ends other tools.
func TestHostileStandardOutput(t *testing.T) {
	full := filepath.Join(t.TempDir(), "full")
	short.Check(t, makeDevice(full, 7))
	disk := short.Must(os.OpenFile(full, os.O_WRONLY, 0))(t)
	defer disk.Close()
	var lines [][]string
	cli.Walk((&app{}).rootCommand(), func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		if c.DisableFlagParsing {
			return // it prints an error only
		}
		lines = append(lines, append(slices.Clone(path), "--help"), append([]string{"help"}, path...))
	})
	d := tables(t)
	for _, line := range []string{"check D", "check D --format json", "compile --engines", "compile -t D/fabric.ibnetdiscover -e updn --dry-run", "compare -t D/fabric.ibnetdiscover -e updn",
		"diff D D", "drift D --live D/opensm-lfts.dump -v", "whatif -t D/fabric.ibnetdiscover -e updn --fail links", "whatif --merge D/whatif.json", "report D -o -", "sim D --load 0.1 --max-time 20us",
		"gen mesh --dims 3x3", "version", "completion bash", "check --rules", "check --explain credit-loop"} {
		lines = append(lines, inputArgs(line, d, ""))
	}
	for _, args := range lines {
		var errs bytes.Buffer
		if got := run(args, strings.NewReader(""), disk, &errs); got != exitEnvironment || strings.Count("\n"+errs.String(), "\nibweave: ") != 1 || !strings.HasSuffix(errs.String(), "no space left on device\n") {
			t.Errorf("%v to a full disk: exit status %d, %s", args, got, &errs)
		}
	}
	for _, line := range []string{"--help", "check --rules", "gen mesh --dims 30x30"} {
		r, w := short.Must2(os.Pipe())(t)
		short.Check(t, r.Close())
		if got := runProgram(t, w, nil, strings.Fields(line)...); got.status != -1 || got.stderr != "" {
			t.Errorf("%s into a closed pipe: exit status %d, %s; want a signal and no word", line, got.status, got.stderr)
		}
		w.Close()
	}
}

// An input that takes more memory than there is when it is parsed ends with one line.
func TestHostileMemory(t *testing.T) {
	short.NeedPrograms(t)
	t.Parallel()
	name := filepath.Join(t.TempDir(), "groups.json")
	short.Check(t, os.WriteFile(name, []byte(`[{"name":"a","receivers":[`+strings.Repeat("[],", short.Of(10, 7)<<20)+`1]}]`), 0o600))
	d := tables(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -v 2500000; exec "$@"`, "sh", program, "compile", "-t", filepath.Join(d, "fabric.ibnetdiscover"), "-e", "xy", "--dry-run", "-g", name)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != exitInput || bytes.Count(out, []byte("\n")) != 1 || !bytes.Contains(out, []byte("of memory, seven eighths of what there is")) {
		t.Errorf("exit status %d\n%.1000s", got, out)
	}
}

// evil acts on a terminal: it sets the title, clears the screen, turns the direction of
// text, and is no UTF-8.
const evil = "a\x1b]0;x\a\x1b[2J\u009b2J\u202eb\xff\x7f\rc"

// TestInterruptedInput ends a command by one SIGTERM that waits for the writer of a FIFO:
// for one to come, and for text from one that is there.
func TestInterruptedInput(t *testing.T) {
	short.NeedPrograms(t)
	d := tables(t)
	text := short.Must(os.ReadFile(filepath.Join(d, "fabric.ibnetdiscover")))(t)
	topology, lfts := filepath.Join(t.TempDir(), "topology"), filepath.Join(t.TempDir(), "lfts")
	for _, name := range []string{topology, lfts} {
		short.Check(t, syscall.Mkfifo(name, 0o600))
	}
	for _, closed := range []bool{true, false} {
		cmd := exec.CommandContext(t.Context(), "ibweave", "check", "-t", topology, "--lfts", lfts)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		short.Check(t, cmd.Start())
		w, err := os.OpenFile(topology, os.O_WRONLY, 0) // the command has it open from here on
		if err == nil && closed {
			_, err = w.Write(text)
			err = errors.Join(err, w.Close())
		}
		if err == nil {
			err = cmd.Process.Signal(syscall.SIGTERM)
		}
		short.Check(t, err)
		_ = cmd.Wait()
		if got, want := errs.String(), "ibweave: interrupted; nothing was left half done\n"; cmd.ProcessState.ExitCode() != exitEnvironment || got != want {
			t.Errorf("topology read to its end %v: %v, %q, want %q", closed, cmd.ProcessState, got, want)
		}
		_ = w.Close()
	}
}

// acts finds what a terminal would act on.
func acts(s string) string {
	for i, r := range s {
		if size := utf8.RuneLen(r); r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			return fmt.Sprintf("%q", s[max(0, i-40):min(len(s), i+size+40)])
		}
	}
	return ""
}

// Whatever is in a file, what commands say of it does not act on a terminal.
func TestHostileText(t *testing.T) {
	d := tables(t)
	simulated(t, d)
	h := t.TempDir()
	evilFile := filepath.Join(h, "e\x1b[31m")
	short.Check(t, os.Mkdir(evilFile, 0o700))
	for _, text := range short.Part(3, []string{evil, "Unicast lids [0x0-0x1] of switch Lid 1 guid 0x0000000000200000 (" + evil + "):\n" + evil,
		"Switch\t5 \"S-" + evil + "\"\n" + evil, "groups: [{name: \"" + evil + "\", " + evil, "{\"" + evil, evil + ": 1\n", "0x" + evil + " 1 1\n"}) {
		for name, line := range inputs {
			short.Check(t, os.WriteFile(filepath.Join(evilFile, "manifest.json"), []byte(text+"\n"), 0o600))
			var out, errs bytes.Buffer
			got := run(inputArgs(line, d, evilFile), strings.NewReader(""), &out, &errs)
			short.Equal(t, acts(out.String()+errs.String()), "", name, "with", text, "exit status", got)
			if got == exitInput && !strings.Contains(errs.String(), `e\x1b[31m`) {
				t.Errorf("%s with %q: no name of the file in %s", name, text, &errs)
			}
		}
	}

	// Names of nodes.
	named := filepath.Join(h, "named")
	text := short.Must(os.ReadFile(filepath.Join(d, "fabric.ibnetdiscover")))(t)
	short.Check(t, os.WriteFile(named, regexp.MustCompile(`(# "[^"]*)"`).ReplaceAll(text, []byte("${1} "+evil+"\"")), 0o600))
	cut := filepath.Join(h, "cut") // with errors that name nodes
	dump := short.Must(os.ReadFile(filepath.Join(d, "opensm-lfts.dump")))(t)
	short.Check(t, os.WriteFile(cut, regexp.MustCompile(`(?m)^0x0003 \d+`).ReplaceAll(dump, []byte("0x0003 003")), 0o600))
	compiled := filepath.Join(h, "compiled")
	// A topology text loses whole control sequences, which terminals put into what they log.
	left := strings.NewReplacer("\x1b]0;x\a", "", "\x1b[2J", "").Replace(evil)
	for _, c := range []struct {
		line  string
		names bool // whether it names nodes
	}{
		{"compile -t NAMED -e updn -g G -o COMPILED", false},
		{"check -t NAMED --lfts CUT --wiring", true},
		{"check -t NAMED --lfts CUT --format json", true},
		{"check COMPILED", false},
		{"diff COMPILED D -v", true},
		{"diff NAMED D/fabric.ibnetdiscover", true},
		{"drift COMPILED --live CUT", true},
		{"compare -t NAMED -e updn,minhop", true},
		{"whatif -t NAMED -e updn --fail switches", true},
		{"check -t NAMED --lfts CUT --format junit", true},
	} {
		line := strings.NewReplacer("NAMED", named, "CUT", cut, "COMPILED", compiled, "D/", d+"/", " D ", " "+d+" ", " G ", " "+filepath.Join(filepath.Dir(d), "groups.yaml")+" ").Replace(c.line)
		var out, errs bytes.Buffer
		got := run(strings.Fields(line), strings.NewReader(""), &out, &errs)
		if got != exitClean && got != exitFindings {
			t.Errorf("%s: exit status %d, %s", line, got, &errs)
		}
		short.Equal(t, acts(out.String()+errs.String()), "", line)
		if c.names && !strings.Contains(out.String(), "2J") {
			t.Errorf("%s: no name in\n%s", line, &out)
		}
		if strings.HasSuffix(line, "json") {
			var doc any
			short.Check(t, json.Unmarshal(out.Bytes(), &doc))
			// encoding/json makes U+FFFD of what is no UTF-8.
			if want := strings.ToValidUTF8(left, "\ufffd"); !strings.Contains(fmt.Sprint(doc), want) {
				t.Errorf("%s: JSON has no %q\n%.3000q", line, want, fmt.Sprint(doc))
			}
		}
	}
}

// shown is what a viewer shows of a file: its text, the strings of JSON, and those that a page packs.
func shown(t *testing.T, name string) (texts []string) {
	t.Helper()
	data := short.Must(os.ReadFile(name))(t)
	var add func(v any)
	add = func(v any) {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case []any:
			for _, x := range v {
				add(x)
			}
		case map[string]any:
			for key, x := range v {
				texts = append(texts, key)
				add(x)
			}
		}
	}
	decode := func(data []byte) {
		var v any
		short.Check(t, json.Unmarshal(data, &v))
		add(v)
	}
	switch filepath.Ext(name) {
	case ".sarif", ".json":
		decode(data)
	case ".html":
		packed := regexp.MustCompile(`<script type="application/gzip" id="document[^"]*">([^<]*)</script>`)
		list := packed.FindAllSubmatch(data, -1)
		if len(list) == 0 {
			t.Fatalf("%s has no document", name)
		}
		for _, m := range list {
			z := short.Must(gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(m[1]))))(t)
			text := short.Must(io.ReadAll(z))(t)
			decode(text)
		}
	}
	return append(texts, string(data))
}

// TestHiddenCharacters gives nodes, groups and files names with characters that turn the direction
// of text, end lines or cannot be seen, and looks for them in what viewers show: they are escaped.
func TestHiddenCharacters(t *testing.T) {
	const hidden = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u2028\u2029\u0085\u009b\u200b\ufeff\u00ad\U000e0041\x7f"
	d, h := tables(t), t.TempDir()
	in := func(name string) string { return filepath.Join(h, name) }
	text := short.Must(os.ReadFile(filepath.Join(d, "fabric.ibnetdiscover")))(t)
	lfts := short.Must(os.ReadFile(filepath.Join(d, "opensm-lfts.dump")))(t)
	base := in("x" + hidden)
	for name, data := range map[string]string{
		base:            regexp.MustCompile(`(# "[^"]*)"`).ReplaceAllString(string(text), "${1}"+hidden+"\""),
		in("cut"):       regexp.MustCompile(`(?m)^0x0003 \d+`).ReplaceAllString(string(lfts), "0x0003 003"),
		in("policy"):    fmt.Sprintf("waivers: [{rule: unicast-unreachable, until: 9999-12-31, reason: %q}]\n", "r"+hidden),
		in("jobs.yaml"): fmt.Sprintf("jobs: [{name: %q, hosts: '0x100000,0x100002', patterns: [{pattern: alltoall, size: 64K}]}]\n", "j"+hidden),
		in("groups"):    fmt.Sprintf("host-regexp: '^(host.[0-9]+,[0-9]+)'\nrack: {%q: 're:.*'}\n", "g"+hidden),
	} {
		short.Check(t, os.WriteFile(name, []byte(data), 0o600))
	}
	damaged := "check -t BASE --lfts H/cut --policy H/policy --host-groups H/groups --report "
	written := map[string]string{
		"page.html":    "report -t BASE --lfts H/cut --host-groups H/groups -o ",
		"fabric.svg":   "report -t BASE --lfts H/cut --svg ",
		"path.svg":     "report -t BASE --lfts H/cut --view path:0x100000,0x100002 --svg ",
		"x.sarif":      damaged + "sarif=",
		"junit.xml":    damaged + "junit=",
		"summary.md":   damaged + "markdown=",
		"metrics.prom": damaged + "prometheus=",
		"check.txt":    damaged + "text=",
		"sim.csv":      "sim -t BASE --lfts H/cut --load 0.1 --format csv -o ",
		"sim.svg":      "sim -t BASE -e updn --load 0.1,0.2 --adaptive all -o H/o --svg ",
		"jobs.svg":     "sim -t BASE -e updn --traffic H/jobs.yaml --adaptive all -o H/o --svg ",
		"whatif":       "whatif -t BASE -e updn --fail switches -o ",
		"topology":     "slurm -t BASE --host-regexp ^host.([0-9]),[0-1] -o ",
	}
	for name, line := range written {
		args := strings.Fields(line + "FILE")
		for i := range args {
			args[i] = strings.NewReplacer("BASE", base, "H/", h+"/", "FILE", in(name)).Replace(args[i])
		}
		var out, errs bytes.Buffer
		if got := run(args, strings.NewReader(""), &out, &errs); got != exitClean && got != exitFindings {
			t.Errorf("%s: exit status %d, %s", line, got, &errs)
			continue
		}
		texts := append(shown(t, in(name)), out.String(), errs.String())
		for _, text := range texts {
			if found := acts(text); found != "" {
				t.Errorf("%s: %s", line, found)
				break
			}
		}
		if name != "sim.csv" && name != "sim.svg" && !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, `\u202e`) }) {
			t.Errorf("%s: no name with an escape", line)
		}
	}
	// An escape in the value of a label has a backslash of its own (Exposition formats, prometheus.io).
	if text := shown(t, in("metrics.prom"))[0]; strings.Contains(strings.ReplaceAll(text, `\\`, ""), `\u`) {
		t.Errorf("metrics:\n%s", text)
	}
}
