package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/internal/short"
)

// onTerminal runs the program on a terminal of width columns, and gives what that shows.
func onTerminal(t *testing.T, dir string, width uint16, env []string, args ...string) string {
	t.Helper()
	short.NeedPrograms(t)
	master := short.Must(os.OpenFile("/dev/ptmx", os.O_RDWR, 0))(t)
	defer master.Close()
	fd := int(master.Fd())
	n := short.Must(unix.IoctlGetInt(fd, unix.TIOCGPTN))(t)
	short.Check(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	short.Check(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: width}))
	slave := short.Must(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, slave, slave, slave
	cmd.Env = append(append(os.Environ(), "TERM=xterm", "NO_COLOR="), env...)
	short.Check(t, cmd.Start())
	slave.Close()
	var shown bytes.Buffer
	_, _ = io.Copy(&shown, master) // which ends with an error when the program has
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != exitFindings {
		t.Errorf("%v: %v: %s", args, err, &shown)
	}
	return strings.ReplaceAll(shown.String(), "\r\n", "\n")
}

// escapes are colours, and lines of progress that have gone.
var escapes = regexp.MustCompile("(?m)^.*[\u2800-\u28ff] \\d+s\n|\x1b\\[[0-9;]*[mAJ]")

// words is the words of a text. Lists that have been broken behind commas are whole.
func words(text string) []string {
	text = regexp.MustCompile(`,\n +`).ReplaceAllString(text, ", ")
	return strings.Fields(strings.NewReplacer(" \\\n", "\n", ",", ", ").Replace(text))
}

// longNames writes a tree with names as long as sites have them.
func longNames(t *testing.T, dir, file string, flags ...string) {
	t.Helper()
	var out, errs bytes.Buffer
	if run(append([]string{"gen", "tree", "--leaves", "4", "--hosts", "3", "--spines", "2", "--ports", "8", "--names", "site"}, flags...), strings.NewReader(""), &out, &errs) != exitClean {
		t.Fatal(errs.String())
	}
	text := regexp.MustCompile(`MF0;(\w+):IS5035/U1`).ReplaceAllString(out.String(), "MF0;hpc2-row03-rack17-$1-ib:MQM8700/U1")
	text = regexp.MustCompile(`"(node\d+) (mlx5_\d)"`).ReplaceAllString(text, `"hpc2-row03-rack17-$1-compute $2"`)
	short.Check(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
}

// On a terminal of 80 columns no line is longer, no word is broken and none is lost: the words are
// those of a pipe.
func TestTerminal(t *testing.T) {
	short.NeedPrograms(t)
	dir := t.TempDir()
	longNames(t, dir, "fabric")
	longNames(t, dir, "worn", "--drop-links", "1")
	for name, text := range map[string]string{
		"groups.yaml": "groups:\n  - name: all\n    receivers: [\"re:^hpc2\"]\n",
		"jobs.yaml":   "jobs:\n  - {name: climate, hosts: \"hpc2-row03-rack17-node[0001-0009]-compute\", patterns: [{pattern: alltoall, size: 1M}]}\n",
		"edits.yaml":  "edits:\n  - unplug \"MF0;hpc2-row03-rack17-leaf00-ib:MQM8700/U1\":7\n",
	} {
		short.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	piped := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState.ExitCode() != exitFindings {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	piped("compile", "-t", "fabric", "-e", "updn", "-o", "old")
	piped("compile", "-t", "worn", "-e", "updn", "-g", "groups.yaml", "-o", "tables")
	stages := regexp.MustCompile(`(?:[\w-]+ )+[\x{2800}-\x{28FF}] \d+s `) // shown where a command takes more than a second
	seconds := regexp.MustCompile(`(?m)^ *seconds.*(\n +.*)*|\d+\.\d+ s\b`)
	for _, line := range []string{
		"compile -t worn -e updn -g groups.yaml --dry-run", "compile -t worn -e updn --install-dir /etc/opensm/fabrics/hpc2/ibweave -o other", "compile --engines",
		"check tables --wiring", "check -t fabric --lfts tables/opensm-lfts.dump", "check --rules", "check --explain credit-loop",
		"compare -t worn -e updn,minhop --bisections 5 --permutations 5 --shifts 5 --traffic jobs.yaml", "diff old tables", "diff old tables -v", "drift old --live tables/opensm-lfts.dump",
		"whatif -t worn -e updn --fail links", "drain old --switch hpc2-row03-rack17-spine00-ib", "move old edits.yaml", "path tables 0x100000 0x100006",
		"traffic tables --traffic jobs.yaml", "place tables --hosts 2 --traffic jobs.yaml", "sim tables --load 0.1 --max-time 20us", "version",
		"gen mesh --dims 2x2 -o mesh", "report tables -o page.html", "rehearse tables",
	} {
		args := strings.Fields(line)
		want := seconds.ReplaceAllString(piped(args...), "")
		shown := onTerminal(t, dir, cli.Columns, nil, args...)
		plain := escapes.ReplaceAllString(shown, "")
		for line := range strings.Lines(plain) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > cli.Columns && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%v: %d columns: %s", args, utf8.RuneCountInString(line), line)
			}
		}
		got, all := words(seconds.ReplaceAllString(plain, "")), words(want)
		if g, w := stages.ReplaceAllString(strings.Join(got, " "), ""), strings.Join(all, " "); g != w {
			t.Errorf("%v shows other words:\n%s\nwant\n%s", args, g, w)
		}
	}
	for _, c := range []struct {
		color string
		env   []string
		want  bool
	}{{"auto", nil, true}, {"auto", []string{"NO_COLOR=1"}, false}, {"never", nil, false}, {"always", []string{"NO_COLOR=1"}, true}} {
		shown := onTerminal(t, dir, cli.Columns, c.env, "check", "tables", "--wiring", "--color", c.color)
		if got := strings.Contains(shown, "verdict      \x1b[1;31merrors\x1b[0m") && strings.Contains(shown, "\n\x1b[1;31merror\x1b[0m: missing-cable"); got != c.want || !c.want && strings.Contains(shown, "\x1b") {
			t.Errorf("--color %s, %v: coloured %t, want %t:\n%q", c.color, c.env, got, c.want, shown)
		}
	}
	if text := piped("check", "tables", "--wiring"); strings.Contains(text, "\x1b") {
		t.Errorf("a pipe has colours: %q", text)
	}
	if text := piped("check", "tables", "--wiring", "--color", "always"); !strings.Contains(text, "\x1b[1;31merrors") {
		t.Errorf("--color always does not colour: %q", text)
	}
	if text := onTerminal(t, dir, cli.Columns, nil, "check", "tables", "--format", "json", "--color", "always"); wantSchema([]string{"check", "--format", "json"}, text) != nil || strings.Contains(text, "\x1b") {
		t.Errorf("JSON on a terminal: %s", text)
	}
}
