// Package ci tests the GitHub Action and the GitLab template by running them: the
// steps of action.yml and the script of gitlab.yml, with the variables that the runners
// set, on the example repository in examples/ci-gate.
package ci

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/internal/built"
	"github.com/ibweave/ibweave/internal/short"
)

// readYAML reads a file of YAML into v.
func readYAML(t *testing.T, name string, v any) {
	t.Helper()
	data := short.Must(os.ReadFile(name))(t)
	if err := yaml.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// action is what action.yml says, as far as a runner of composite actions reads it.
type action struct {
	Name, Description string
	Inputs            map[string]struct {
		Description string
		Default     *string
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []struct {
			ID, Shell, Run string
			Env            map[string]string
		}
	}
}

// repository is a copy of the example, with a patch applied unless it is "".
func repository(t *testing.T, patch string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repository")
	short.Check(t, os.CopyFS(dir, os.DirFS("../examples/ci-gate")))
	if patch == "" {
		return dir
	}
	cmd := exec.Command("git", "apply", filepath.Join("changes", patch+".patch"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s", err, out)
	}
	return dir
}

// buildFlags leave debugging information out, which takes a third of a link, and what git says.
const buildFlags = "-ldflags=-w -buildvcs=false"

var goFolders = []string{"GOCACHE", "GOMODCACHE", "GOROOT"}

// goEnv asks Go for its folders.
var goEnv = sync.OnceValue(func() []string {
	out, err := exec.Command("go", append([]string{"env"}, goFolders...)...).Output()
	if err != nil {
		panic(err)
	}
	return strings.Fields(string(out))
})

// clean is an environment with nothing of this process but what Go needs to build
// without a network, and variables.
func clean(t *testing.T, variables map[string]string) []string {
	t.Helper()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8", "GOPROXY=off", "GOTELEMETRY=off",
		"GOFLAGS=" + buildFlags}
	for i, name := range goFolders {
		env = append(env, name+"="+goEnv()[i])
	}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, name+"="+variables[name])
	}
	return env
}

// ran is what came of a job.
type ran struct {
	status  int
	log     string
	outputs map[string]string // of the action
	summary string
	dir     string // the repository
}

var expression = regexp.MustCompile(`\$\{\{\s*([^}]*?)\s*\}\}`)

// runAction does what GitHub's runner does with a composite action of run steps, until
// one fails.
func runAction(t *testing.T, dir string, with map[string]string) ran {
	t.Helper()
	var a action
	readYAML(t, "../action.yml", &a)
	root := short.Must(filepath.Abs(".."))(t)
	temp := t.TempDir()
	summary := filepath.Join(temp, "summary")
	values := map[string]string{"github.action_path": root, "runner.temp": temp}
	for name, in := range a.Inputs {
		if in.Default != nil {
			values["inputs."+name] = *in.Default
		}
	}
	for name, v := range with {
		if _, ok := a.Inputs[name]; !ok {
			t.Fatalf("the action has no input %q", name)
		}
		values["inputs."+name] = v
	}
	expand := func(s string) string {
		return expression.ReplaceAllStringFunc(s, func(e string) string {
			name := expression.FindStringSubmatch(e)[1]
			v, ok := values[name]
			if !ok && !strings.HasPrefix(name, "steps.") {
				t.Fatalf("action.yml: %s is nothing that this runner knows", e)
			}
			return v
		})
	}
	r := ran{dir: dir, outputs: map[string]string{}}
	short.Check(t, os.WriteFile(summary, nil, 0o666))
	if with["program"] == "" {
		defer leave(t, filepath.Join(temp, "ibweave/ibweave"))()
	}
	for i, step := range a.Runs.Steps {
		if step.Shell != "bash" || expression.MatchString(step.Run) {
			t.Fatalf("step %d: want bash, and inputs by its environment only", i)
		}
		output, script := filepath.Join(temp, fmt.Sprintf("output%d", i)), filepath.Join(temp, fmt.Sprintf("step%d.sh", i))
		for name, text := range map[string]string{output: "", script: step.Run} {
			short.Check(t, os.WriteFile(name, []byte(text), 0o666))
		}
		variables := map[string]string{
			"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": dir, "GITHUB_ACTION_PATH": root,
			"GITHUB_OUTPUT": output, "GITHUB_STEP_SUMMARY": summary, "RUNNER_TEMP": temp, "RUNNER_OS": "Linux",
			"GITHUB_SHA": strings.Repeat("0", 40), "GITHUB_REF": "refs/pull/1/merge", "GITHUB_REPOSITORY": "example/fabric",
		}
		for name, v := range step.Env {
			variables[name] = expand(v)
		}
		cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", script)
		cmd.Dir, cmd.Env = dir, clean(t, variables)
		log, err := cmd.CombinedOutput()
		r.log += string(log)
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		data := short.Must(os.ReadFile(output))(t)
		for line := range strings.Lines(string(data)) {
			name, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			if !ok {
				t.Fatalf("step %d: output %q", i, line)
			}
			values["steps."+step.ID+".outputs."+name] = v
		}
		if r.status = cmd.ProcessState.ExitCode(); r.status != 0 {
			break
		}
	}
	for name, out := range a.Outputs {
		r.outputs[name] = expand(out.Value)
	}
	data := short.Must(os.ReadFile(summary))(t)
	if len(data) > 1<<20 {
		t.Errorf("a summary of %d bytes, and GitHub takes 1 MiB", len(data))
	}
	r.summary = string(data)
	return r
}

// program is ibweave, as jobs build it.
var program = sync.OnceValue(func() string {
	file, err := built.Program("ibweave", "../cmd/ibweave", append(strings.Fields(buildFlags), "-trimpath")...)
	if err != nil {
		panic(err)
	}
	return file
})

// leave puts the program where a job builds it, as an old job has left it, so that go need
// not link it again. The job must have built it when the test calls the result.
func leave(t *testing.T, name string) (check func()) {
	t.Helper()
	old := time.Unix(0, 0)
	short.Check(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, short.Must(os.ReadFile(program()))(t), 0o777), os.Chtimes(name, old, old)))
	return func() {
		t.Helper()
		if info, err := os.Stat(name); err != nil || info.ModTime().Equal(old) {
			t.Errorf("the job has not built %s: %v", name, err)
		}
	}
}

// with is the inputs that the example's workflow gives the action.
func with(t *testing.T, dir string) map[string]string {
	t.Helper()
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]string
			}
		}
	}
	readYAML(t, filepath.Join(dir, ".github/workflows/fabric.yml"), &workflow)
	for _, s := range workflow.Jobs["gate"].Steps {
		if strings.HasPrefix(s.Uses, "ibweave/ibweave@") {
			return s.With
		}
	}
	t.Fatal("the workflow does not use the action")
	return nil
}

// log is the part of SARIF that GitHub reads.
type sarif struct {
	Runs []struct {
		Tool struct {
			Driver struct{ Rules []struct{ ID string } }
		}
		Artifacts []struct{ Location struct{ URI string } }
		Results   []struct {
			RuleID, Level string
			Locations     []struct {
				PhysicalLocation struct {
					ArtifactLocation struct{ URI string }
					Region           struct{ StartLine int }
				}
			}
			PartialFingerprints map[string]string
		}
	}
}

// schema is that of OASIS.
var schema = sync.OnceValue(func() *jsonschema.Schema {
	return jsonschema.NewCompiler().MustCompile("../report/testdata/sarif-schema-2.1.0.json")
})

// checkSARIF holds a log to the schema of OASIS and to what GitHub documents: files by
// their names in the repository, lines that are there, fingerprints, sizes. It returns
// the rules of its errors.
func checkSARIF(t *testing.T, dir, name string) (rules []string) {
	t.Helper()
	data := short.Must(os.ReadFile(filepath.Join(dir, name)))(t)
	doc := short.Must(jsonschema.UnmarshalJSON(bytes.NewReader(data)))(t)
	short.Check(t, schema().Validate(doc))
	var log sarif
	short.Check(t, json.Unmarshal(data, &log))
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	short.Must(w.Write(data))(t)
	if err := w.Close(); err != nil || zipped.Len() > 10<<20 {
		t.Errorf("%d bytes when zipped, %v; GitHub takes 10 MB", zipped.Len(), err)
	}
	if len(log.Runs) != 1 || len(log.Runs[0].Results) > 25000 {
		t.Fatalf("%d runs", len(log.Runs))
	}
	inside := func(uri string) int {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(uri)))
		if err != nil || !filepath.IsLocal(filepath.FromSlash(uri)) {
			t.Errorf("%q is no file of the repository: %v", uri, err)
		}
		return bytes.Count(text, []byte("\n"))
	}
	for _, a := range log.Runs[0].Artifacts {
		inside(a.Location.URI)
	}
	prints := map[string]bool{}
	for _, r := range log.Runs[0].Results {
		short.MustEqual(t, len(r.Locations), 1)
		at := r.Locations[0].PhysicalLocation
		if n := inside(at.ArtifactLocation.URI); at.Region.StartLine < 1 || at.Region.StartLine > n {
			t.Errorf("line %d of %d", at.Region.StartLine, n)
		}
		print := r.PartialFingerprints["primaryLocationLineHash"]
		if print == "" || prints[print] {
			t.Errorf("fingerprint %q", print)
		}
		prints[print] = true
		if r.Level == "error" {
			rules = append(rules, r.RuleID)
		}
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

// changes is what the example's changes come to.
var changes = []struct {
	patch  string
	status int
	rules  []string // of errors
	tables bool
}{
	{"", 0, nil, true},
	{"replaced-adapter", 0, nil, true},
	{"moved-cable", 1, []string{"moved-cable"}, false},
	{"other-engine", 1, []string{"credit-loop", "not-xy"}, true},
}

// The Action, built from its own checkout without a network, lets the good change in and
// the bad ones not, and says why in the file for code scanning and in the summary.
func TestAction(t *testing.T) {
	short.NeedPrograms(t)
	for i, c := range changes {
		t.Run(c.patch, func(t *testing.T) {
			dir := repository(t, c.patch)
			in := with(t, dir)
			if i > 0 { // the first builds it
				in["program"] = program()
			}
			r := runAction(t, dir, in)
			verdict := map[int]string{0: "pass", 1: "fail"}[c.status]
			if r.status != c.status || r.outputs["status"] != fmt.Sprint(c.status) || r.outputs["verdict"] != verdict || r.outputs["sarif"] != "ibweave.sarif" {
				t.Fatalf("exit status %d, outputs %v\n%s", r.status, r.outputs, r.log)
			}
			short.EqualList(t, checkSARIF(t, dir, "ibweave.sarif"), c.rules, "errors")
			if (r.outputs["tables"] != "") != c.tables {
				t.Errorf("tables in %q", r.outputs["tables"])
			}
			if c.tables {
				if _, err := os.Stat(filepath.Join(r.outputs["tables"], "manifest.json")); err != nil {
					t.Error(err)
				}
			}
			for _, rule := range c.rules {
				short.Contains(t, r.summary, "| error | `"+rule+"` |", "the summary lacks", rule)
			}
			if c.status == 0 && !strings.Contains(r.summary, "passes") {
				t.Errorf("the summary:\n%s", r.summary)
			}
		})
	}
}

// The other inputs: tables and a dump that are in the repository, JUnit, what the change
// does, flags, and input that no shell must take for a command.
func TestActionInputs(t *testing.T) {
	short.NeedPrograms(t)
	dir := repository(t, "")
	run := func(in map[string]string) ran {
		t.Helper()
		in["program"] = program()
		return runAction(t, dir, in)
	}
	for _, engine := range []string{"xy", "minhop"} {
		if out, err := exec.Command(program(), "compile", "-t", filepath.Join(dir, "fabric.ibnetdiscover"), "-e", engine, "-o", filepath.Join(dir, engine)).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	r := run(map[string]string{"tables": "xy", "base": "minhop", "junit": "junit.xml", "policy": "policy.yaml"})
	if r.status != 0 || r.outputs["verdict"] != "pass" || !strings.Contains(r.summary, "What the change does") || !strings.Contains(r.summary, "~~~text") {
		t.Errorf("exit status %d\n%s%s", r.status, r.log, r.summary)
	}
	checkSARIF(t, dir, "ibweave.sarif")
	if data, err := os.ReadFile(filepath.Join(dir, "junit.xml")); err != nil || !bytes.Contains(data, []byte("<testsuites")) {
		t.Errorf("junit.xml: %v", err)
	}
	r = run(map[string]string{"topology": "minhop/fabric.ibnetdiscover", "tables": "minhop/opensm-lfts.dump", "sarif": "other.sarif"})
	if got := checkSARIF(t, dir, "other.sarif"); r.status != 1 || !slices.Equal(got, []string{"credit-loop"}) {
		t.Errorf("a dump: exit status %d, errors of %v\n%s", r.status, got, r.log)
	}
	r = run(map[string]string{"topology": "minhop/fabric.ibnetdiscover", "tables": "minhop/opensm-lfts.dump", "fail-on": "never", "sarif": ""})
	if r.status != 0 || r.outputs["sarif"] != "" {
		t.Errorf("--fail-on never: exit status %d, %v\n%s", r.status, r.outputs, r.log)
	}
	r = run(map[string]string{"topology": "fabric.ibnetdiscover", "engine": "updn", "compile-flags": "--roots\n0x200005\n", "check-flags": "--date\n2026-12-01"})
	if r.status != 0 || !strings.Contains(r.log, "updn") {
		t.Errorf("flags: exit status %d\n%s", r.status, r.log)
	}

	for _, c := range []struct {
		in     map[string]string
		status int
		say    string
	}{
		{map[string]string{}, 2, "want a topology"},
		{map[string]string{"engine": "xy", "tables": "xy"}, 2, "want a topology, and no tables"},
		{map[string]string{"topology": "absent.txt"}, 3, "absent.txt"},
		{map[string]string{"topology": "policy.yaml"}, 3, "policy.yaml"},
		{map[string]string{"topology": "fabric.ibnetdiscover", "engine": "nosuch"}, 2, "nosuch"},
		{map[string]string{"topology": "fabric.ibnetdiscover", "fail-on": "sometimes"}, 2, "sometimes"},
		{map[string]string{"topology": "fabric.ibnetdiscover", "base": "absent"}, 3, "absent"},
		{map[string]string{"topology": "$(touch pwned) `touch pwned`; touch pwned"}, 3, "touch pwned"},
		{map[string]string{"topology": "fabric.ibnetdiscover", "check-flags": "$(touch pwned)"}, 2, "not both"},
	} {
		r := run(c.in)
		if r.status != c.status || r.outputs["verdict"] != "error" || !strings.Contains(r.log, c.say) || !strings.Contains(r.summary, c.say) {
			t.Errorf("%v: exit status %d, outputs %v\n%s\n%s", c.in, r.status, r.outputs, r.log, r.summary)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("a shell ran what an input said")
	}
}

// Each input and output of the Action is described, and is used.
func TestActionDescribes(t *testing.T) {
	var a action
	readYAML(t, "../action.yml", &a)
	text := short.Must(os.ReadFile("../action.yml"))(t)
	doc := short.Must(os.ReadFile("../docs/dev/ci.md"))(t)
	if a.Name == "" || a.Description == "" || a.Runs.Using != "composite" || len(a.Inputs) < 10 || len(a.Outputs) < 3 {
		t.Fatalf("%+v", a)
	}
	for name, in := range a.Inputs {
		if in.Description == "" || in.Default == nil || !strings.Contains(string(text), "${{ inputs."+name+" }}") || !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("input %s: %+v", name, in)
		}
	}
	for name, out := range a.Outputs {
		if out.Description == "" || !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("output %s: %+v", name, out)
		}
	}
}

// job is a job of GitLab's, as far as it is needed here.
type job struct {
	Extends   string
	Variables map[string]string
	Script    []string
	Artifacts struct {
		When    string
		Paths   []string
		Reports map[string]string
	}
}

// runGitLab does what GitLab's runner does with the example's job, which extends the
// template's.
func runGitLab(t *testing.T, dir string, more map[string]string) (ran, job) {
	t.Helper()
	template, own := map[string]job{}, struct{ Fabric job }{}
	readYAML(t, "gitlab.yml", &template)
	readYAML(t, filepath.Join(dir, ".gitlab-ci.yml"), &own)
	base, ok := template[own.Fabric.Extends]
	if !ok {
		t.Fatalf("the template has no %q", own.Fabric.Extends)
	}
	variables := map[string]string{"CI": "true", "GITLAB_CI": "true", "CI_PROJECT_DIR": dir, "CI_JOB_NAME": "fabric"}
	maps.Copy(variables, base.Variables)
	maps.Copy(variables, own.Fabric.Variables)
	maps.Copy(variables, more)
	if more["IBWEAVE_CHECKOUT"] != "" {
		defer leave(t, filepath.Join(dir, "ibweave/bin/ibweave"))()
	}
	cmd := exec.Command("bash", "-eo", "pipefail", "-c", strings.Join(base.Script, "\n"))
	cmd.Dir, cmd.Env = dir, clean(t, variables)
	log, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ran{status: cmd.ProcessState.ExitCode(), log: string(log), dir: dir}, base
}

// The GitLab template on the same changes: a JUnit report where the template says, as
// GitLab's viewers want it.
func TestGitLab(t *testing.T) {
	short.NeedPrograms(t)
	root := short.Must(filepath.Abs(".."))(t)
	for _, c := range changes {
		t.Run(c.patch, func(t *testing.T) {
			dir := repository(t, c.patch)
			r, j := runGitLab(t, dir, map[string]string{"IBWEAVE_CHECKOUT": root})
			if r.status != c.status || j.Artifacts.When != "always" {
				t.Fatalf("exit status %d\n%s", r.status, r.log)
			}
			for _, path := range j.Artifacts.Paths {
				if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
					t.Error(err)
				}
			}

			data, err := os.ReadFile(filepath.Join(dir, j.Artifacts.Reports["junit"]))
			if err != nil || !strings.HasSuffix(j.Artifacts.Reports["junit"], ".xml") || len(data) > 30<<20 {
				t.Fatalf("JUnit, %d bytes: %v", len(data), err)
			}
			var suites struct {
				Cases []struct {
					Class   string    `xml:"classname,attr"`
					Name    string    `xml:"name,attr"`
					Failure *struct{} `xml:"failure"`
				} `xml:"testsuite>testcase"`
			}
			short.Check(t, xml.Unmarshal(data, &suites))
			seen := map[string]bool{}
			var failed []string
			for _, c := range suites.Cases {
				if c.Class == "" || seen[c.Name] {
					t.Errorf("case %q of %q, again", c.Name, c.Class)
				}
				seen[c.Name] = true
				if c.Failure != nil {
					failed = append(failed, c.Name)
				}
			}
			slices.Sort(failed)
			if !slices.Equal(failed, c.rules) || len(seen) < 10 {
				t.Errorf("of %d cases %v fail, want %v", len(seen), failed, c.rules)
			}
		})
	}
}

// The template's source comes through Go's module proxy when no checkout is named, and a
// version that is not there fails the job.
func TestGitLabNoSource(t *testing.T) {
	r, _ := runGitLab(t, repository(t, ""), nil)
	if r.status == 0 || !strings.Contains(r.log, "module lookup disabled by GOPROXY=off") {
		t.Errorf("exit status %d\n%s", r.status, r.log)
	}
}
