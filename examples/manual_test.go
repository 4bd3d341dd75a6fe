package examples

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ibweave/ibweave/internal/built"
	"github.com/ibweave/ibweave/internal/short"
)

var (
	// consoles finds the blocks of a page that show commands, after "$ ", and what they print.
	consoles = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")
	// fences finds all blocks, with the words behind the first fence.
	fences = regexp.MustCompile("(?ms)^ *```([^\n]*)\n(.*?)^ *```$")
	// timed are times in a line of a log.
	timed = regexp.MustCompile(` in [0-9.]+(µs|ms|s)\b`)
	// unrun are the reasons for which a block of commands may say that no test runs it.
	unrun = regexp.MustCompile(`^sh needs=(fabric|root|source|browser|time)$`)
	// invoked finds one of our programs with a command in a line, up to the next program.
	invoked = regexp.MustCompile(`\b(ibweave(?:-papers)?) ([a-z]+)([^|;<>&` + "`" + `\n]*)`)
	option  = regexp.MustCompile(`(?:^| )(--[a-z][a-z0-9-]*)`)
)

// manual lists the pages for operators: README.md, docs and docs/runbooks.
func manual(t *testing.T) (pages []string) {
	t.Helper()
	for _, pattern := range []string{"../README.md", "../docs/*.md", "../docs/runbooks/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		pages = append(pages, found...)
	}
	return slices.DeleteFunc(pages, func(page string) bool { return page == "../docs/reproduction.md" }) // for researchers
}

// programs is a folder with our programs and OpenSM's plugin beside it, as make leaves them in bin.
var programs = sync.OnceValues(func() (string, error) {
	plugin, err := built.Program("libibweave-opensm.so", "../cmd/ibweave-opensm", "-tags", "opensm", "-buildmode=c-shared", "-ldflags=-w")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "ibweave-programs-")
	if err != nil {
		return "", err
	}
	for _, file := range []string{program(), papers(), plugin} {
		if err := os.Symlink(file, filepath.Join(dir, filepath.Base(file))); err != nil {
			return "", err
		}
	}
	return dir, nil
})

// The commands of the manual print what the page says, up to measured times. Those of a page
// run one after the other in one directory, where examples is, after the file lab/env as soon as
// lab.sh has made that. With UPDATE_EXAMPLES set, the pages are written instead.
func TestPages(t *testing.T) {
	short.NeedPrograms(t)
	here := short.Must(os.Getwd())(t)
	bin := short.Must(programs())(t)
	env := append(os.Environ(), "LD_LIBRARY_PATH="+bin+":"+os.Getenv("LD_LIBRARY_PATH"), "PATH="+bin+":"+os.Getenv("PATH"))
	t.Run("pages", func(t *testing.T) {
		for _, name := range manual(t) {
			page := short.Must(os.ReadFile(name))(t)
			if !consoles.Match(page) {
				continue
			}
			t.Run(strings.TrimPrefix(name, "../"), func(t *testing.T) {
				t.Parallel()
				work := t.TempDir()
				short.Check(t, os.Symlink(here, filepath.Join(work, "examples")))
				runPage(t, env, name, work, page)
			})
		}
	})
}

func runPage(t *testing.T, env []string, name, work string, page []byte) {
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(work, "lab")); err == nil {
			if out, status := runPageCommand(t, env, work, "sh examples/lab/lab.sh stop"); status != 0 {
				t.Error(out)
			}
		}
	})
	now := consoles.ReplaceAllStringFunc(string(page), func(block string) string {
		var b strings.Builder
		b.WriteString("```console\n")
		for line := range strings.Lines(block) {
			command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ ")
			if !ok {
				continue
			}
			out, _ := runPageCommand(t, env, work, strings.Replace(command, "go run ./cmd/ibweave", "ibweave", 1))
			b.WriteString(line)
			b.WriteString(out)
		}
		b.WriteString("```")
		return b.String()
	})
	if os.Getenv("UPDATE_EXAMPLES") != "" {
		short.Check(t, os.WriteFile(name, []byte(now), 0o666))
		return
	}
	short.Diff(t, timeless(now), timeless(string(page)), "commands print other text (-", name, "+now); make update if that is right")
}

// runPageCommand runs a command of a page.
func runPageCommand(t *testing.T, env []string, work, command string) (output string, status int) {
	t.Helper()
	return runIn(t, env, work, "sh", "-c", "[ ! -f lab/env ] || . lab/env\n"+command)
}

// runIn runs a program in a directory. Its output goes to a file, since OpenSM and ibsim of lab.sh
// outlive the shell that starts them.
func runIn(t *testing.T, env []string, dir string, args ...string) (output string, status int) {
	t.Helper()
	short.NeedPrograms(t)
	out := short.Must(os.CreateTemp(t.TempDir(), ""))(t)
	defer out.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, out, out
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	data := short.Must(os.ReadFile(out.Name()))(t)
	return string(data), cmd.ProcessState.ExitCode()
}

func timeless(page string) string {
	return timed.ReplaceAllString(measured.ReplaceAllString(page, ""), "")
}

// Each command of the manual is in a console block, which TestPages runs, or in a block that
// says what it needs; and ibweave has each command and flag that any page names.
func TestManualCommands(t *testing.T) {
	known := make(map[string]string)
	for _, name := range manual(t) {
		data := short.Must(os.ReadFile(name))(t)
		page := string(data)
		for _, block := range fences.FindAllStringSubmatch(page, -1) {
			if block[1] == "console" || unrun.MatchString(block[1]) {
				continue
			}
			for line := range strings.Lines(block[2]) {
				if line = strings.TrimSpace(line); isCommand(line) {
					t.Errorf("%s: %q is in a block that no test runs; ```console, or ```sh needs=REASON", name, line)
				}
			}
		}
		outside := fences.ReplaceAllString(page, "")
		for line := range strings.Lines(outside) {
			if rest, ok := strings.CutPrefix(line, "    "); ok && isCommand(strings.TrimSpace(rest)) {
				t.Errorf("%s: %q is in an indented block, which no test runs", name, rest)
			}
		}
		for _, c := range invoked.FindAllStringSubmatch(page, -1) {
			checkCommand(t, name, known, c[1], c[2], c[3]) // else a word of a sentence
		}
	}
}

func isCommand(line string) bool {
	word, _, _ := strings.Cut(strings.TrimPrefix(line, "$ "), " ")
	return slices.Contains([]string{"ibweave", "sudo", "make", "systemctl", "apt-get", "sh", "cp", "ibnetdiscover", "opensm"}, word)
}

// checkCommand looks for a command and its flags in the help of a program, ibweave or
// ibweave-papers, which known keeps. It returns false if there is no such command.
func checkCommand(t *testing.T, page string, known map[string]string, name, command, rest string) bool {
	t.Helper()
	short.NeedPrograms(t)
	run := program
	if name == "ibweave-papers" {
		run = papers
	}
	if kind, _, _ := strings.Cut(strings.TrimSpace(rest), " "); (command == "gen" || command == "model") && kind != "" && !strings.HasPrefix(kind, "-") {
		command += " " + kind
	}
	called := name + " " + command
	if _, ok := known[called]; !ok {
		out, err := exec.Command(run(), append(strings.Fields(command), "--help")...).CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte(called)) {
			return false
		}
		known[called] = string(out)
	}
	for _, flag := range option.FindAllStringSubmatch(rest, -1) {
		if !regexp.MustCompile(regexp.QuoteMeta(flag[1]) + `\b`).MatchString(known[called]) {
			t.Errorf("%s: %s has no flag %s", page, called, flag[1])
		}
	}
	return true
}

var (
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	indented = regexp.MustCompile(`(?m)^    .*$`)
	linked   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	anchor   = regexp.MustCompile(`<a id="([^"]+)"`)
	noSlug   = regexp.MustCompile(`[^\pL\pN_\- ]`)
	named    = regexp.MustCompile(`\bdocs/[A-Za-z0-9_/-]+\.md\b`)
)

// documents lists the files of the repository with one of the extensions.
func documents(t *testing.T, extensions ...string) (files []string) {
	t.Helper()
	short.NeedPrograms(t)
	out := short.Must(exec.Command("git", "-C", "..", "ls-files", "-co", "--exclude-standard").Output())(t)
	for file := range strings.Lines(string(out)) {
		if file = "../" + strings.TrimSpace(file); slices.Contains(extensions, filepath.Ext(file)) {
			if _, err := os.Stat(file); err == nil {
				files = append(files, file)
			}
		}
	}
	return files
}

// prose is a page without code.
func prose(t *testing.T, file string) string {
	t.Helper()
	data := short.Must(os.ReadFile(file))(t)
	return codeSpan.ReplaceAllString(indented.ReplaceAllString(fences.ReplaceAllString(string(data), ""), ""), "")
}

// anchors are the places of a page that a link can name, as GitHub calls them.
func anchors(t *testing.T, file string) (found []string) {
	t.Helper()
	data := short.Must(os.ReadFile(file))(t)
	page := fences.ReplaceAllString(string(data), "")
	for _, a := range anchor.FindAllStringSubmatch(page, -1) {
		found = append(found, a[1])
	}
	for _, h := range heading.FindAllStringSubmatch(page, -1) {
		slug := noSlug.ReplaceAllString(strings.ToLower(h[1]), "")
		found = append(found, strings.ReplaceAll(slug, " ", "-"))
	}
	return found
}

// Every link between documents leads to a file and to a place in it.
func TestLinks(t *testing.T) {
	links := 0
	for _, file := range documents(t, ".md") {
		for _, l := range linked.FindAllStringSubmatch(prose(t, file), -1) {
			path, place, _ := strings.Cut(l[1], "#")
			if strings.Contains(path, ":") {
				continue
			}
			links++
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", file, l[1])
			} else if place != "" && filepath.Ext(target) == ".md" && !slices.Contains(anchors(t, target), place) {
				t.Errorf("%s links to %s, and %s has no such place", file, l[1], target)
			}
		}
	}
	if links < 200 {
		t.Errorf("%d links", links)
	}
}

// Pages that help, messages and comments name are there.
func TestNamedPages(t *testing.T) {
	for _, file := range append(documents(t, ".go", ".sh", ".yml", ".yaml", ".docs", ".txt", ".txtar"), "../Makefile") {
		if strings.HasPrefix(file, "../papers/") { // names the pages that it writes
			continue
		}
		data := short.Must(os.ReadFile(file))(t)
		for _, page := range named.FindAllString(string(data), -1) {
			if _, err := os.Stat(filepath.Join("..", page)); err != nil {
				t.Errorf("%s names %s, which is not there", file, page)
			}
		}
	}
}

// A person reads README.md in a few minutes, and each page of the manual in less.
func TestManualSize(t *testing.T) {
	const readme, whole, each = 150, 1800, 120
	sum := 0
	for _, name := range manual(t) {
		data := short.Must(os.ReadFile(name))(t)
		lines := bytes.Count(data, []byte("\n"))
		if name == "../README.md" {
			if lines > readme {
				t.Errorf("README.md has %d lines, want at most %d", lines, readme)
			}
			continue
		}
		sum += lines
		if lines > each {
			t.Errorf("%s has %d lines, want at most %d: details belong in docs/dev", name, lines, each)
		}
	}
	if sum > whole {
		t.Errorf("the manual has %d lines, want at most %d: details belong in docs/dev", sum, whole)
	}
	t.Logf("%d lines", sum)
}
