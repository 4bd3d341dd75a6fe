package examples

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ibweave/ibweave/internal/built"
	"github.com/ibweave/ibweave/internal/short"
)

// prepared makes the files that the commands of a page name; "" those of all pages. A page runs in
// a folder of its own, with OpenSM and ibsim of the lab; $examples is this folder.
var prepared = map[string]string{
	"": `
ibweave gen tree --names site --leaves 4 --hosts 16 --spines 5 --ports 40 | sed 's/"node0/"n/' >fabric.txt
ibweave gen tree --names site --leaves 4 --hosts 16 --spines 5 --ports 40 --drop-links 1 | sed 's/"node0/"n/' >changed.txt
cp changed.txt today.txt; cp changed.txt fabric-without-a-cable.txt
cp fabric.txt last-week.txt; cp fabric.txt last-week.ibnetdiscover; cp changed.txt today.ibnetdiscover
printf 'groups:\n  - {name: allreduce, receivers: ["re:^(n00[1-4]|host [01],[01])"]}\n' >groups.yaml
printf 'rack:\n  r12: "n[001-016]"\n  r13: "n[017-064]"\n' >racks.yaml
printf 'links: {width: 4}\n' >policy.yaml
printf 'Default=0x7fff,ipoib: ALL=full;\n' >partitions.conf
printf '0 10 11 256\n' >messages.txt
printf 'tables: tables\nload: 0.1\nmax-time: 50us\n' >experiment.yaml
ibweave compile -t fabric.txt -e updn --install-dir "$PWD/tables" -o tables
cp tables/fabric.ibnetdiscover fabric.txt; cp fabric.txt fabric.ibnetdiscover
ibweave compile -t changed.txt -e updn --previous tables -o tables.new
cp -r tables yesterday; cp -r tables.new today; cp -r tables now; cp -r tables DIR
cp tables/opensm-lfts.dump before.lfts; cp tables.new/opensm-lfts.dump after.lfts
cp tables/opensm-lfts.dump live-lfts.dump; cp tables/opensm-lfts.dump .; cp tables/opensm.fdbs .; cp tables/opensm-subnet.lst .
cp tables/opensm-lfts.dump lfts; ibweave compile -t fabric.txt -e updn -g groups.yaml -o trees; cp trees/mfts.dump mfts; cp trees/opensm.mcfdbs trees/groups.json .; mkdir pulled; cp tables/*.dump tables/fabric.ibnetdiscover pulled
mkdir -p var/log/opensm var/log/opensm.before var/tmp/ibdiagnet2 var/cache/opensm var/lib/node_exporter etc/opensm etc/slurm etc/bash_completion.d
cp tables/opensm-subnet.lst tables/opensm-lfts.dump var/log
cp tables/opensm-subnet.lst tables/opensm-lfts.dump var/log/opensm.before
cp tables.new/opensm-subnet.lst tables.new/opensm-lfts.dump var/log/opensm
cp -r tables etc/opensm/tables; cp partitions.conf etc/opensm; echo "lmc 0" >etc/opensm/opensm.conf
cp tables/opensm-subnet.lst var/tmp/ibdiagnet2/ibdiagnet2.lst
cp tables/opensm.fdbs var/tmp/ibdiagnet2/ibdiagnet2.fdbs
tar -czf ibdiagnet2.tar.gz -C var/tmp ibdiagnet2
cp ibdiagnet2.tar.gz ibdiagnet2-before.tar.gz; cp ibdiagnet2.tar.gz ibdiagnet2-after.tar.gz
ibweave plan fabric.txt -o plan.ndt; cp fabric.txt planned.txt; cp plan.ndt planned.ndt
cp plan.ndt switches.ndt; cp plan.ndt hosts.ndt
printf 'jobs:\n  - {name: a, hosts: "n[001-008]", patterns: [{pattern: alltoall, size: 1G}]}\n' >jobs.yaml; cp jobs.yaml traffic.yaml
sed 's/node\[0/n[/g; s/-0/-/g; s/,0/,/g' $examples/place/squeue.json >squeue.json
ibweave gen torus --dims 4x4 -o torus.txt; ibweave gen mesh --dims 4x4 -o mesh.txt`,
	"dev/adaptive.md": `
cp -r $examples/adaptive-run/*.ibnetdiscover .; ibweave compile -t fabric.ibnetdiscover -e updn --adaptive -o adaptive
mkdir run; cp adaptive/opensm-subnet.lst run/ibdiagnet2.lst; cp adaptive/ibweave.far run/ibdiagnet2.far; cp adaptive/ibweave.far .
cp adaptive/opensm.fdbs run/ibdiagnet2.fdbs
rm -r var/tmp/ibdiagnet2; cp -r run var/tmp/ibdiagnet2
cp run/* .`,
	"dev/counters.md": counters,
	"counters.md":     counters,
	"dev/fattree.md":  "sed -n 's/^Switch.*\"S-\\([0-9a-f]*\\)\".*spine.*/0x\\1/p' fabric.txt >spines.txt",
	"dev/groups.md": `
cp $examples/host-groups/* .; cp fabric.ibnetdiscover fabric.txt; rm -r tables; ibweave compile -t fabric.txt -e updn -o tables`,
	"dev/move.md":       `cp $examples/move/* .; rm -r tables; ibweave compile -t fabric.ibnetdiscover -e updn -o tables`,
	"dev/drain.md":      `rm -r tables; ibweave compile -t $examples/drain/fabric.ibnetdiscover -e updn -o tables`,
	"dev/multicast.md":  `cp mesh.txt fabric.txt; ibweave compile -t fabric.txt -e xy -g groups.yaml --mcast comb -o tables.new`,
	"dev/partitions.md": `cp $examples/partitions/* .; cp fabric.ibnetdiscover fabric.txt`,
	"dev/own-scheme.md": `
(cd $examples/own-scheme && GOWORK=off go build -o "$OLDPWD/own-scheme" .)
ibweave gen irregular --switches 12 --degree 4 --hosts 12 --seed 1 -o net.txt
./own-scheme net.txt unicast; ./own-scheme net.txt own 0x100001 0x100003 0x100007
python3 $examples/own-scheme/masks.py own/fabric.ibnetdiscover 0xc001 0x100001 0x100003 0x100007 >masks.mcfdbs`,
	"dev/path.md":  `rm -r tables; ibweave compile -t $examples/path/fabric.ibnetdiscover -e updn -o tables`,
	"dev/rails.md": rails,
	"dev/report.md": `
gzip -1 <$page >page.wasm.gz; ibweave compile -t torus.txt -e minhop -o shortest
ibweave gen tree --pods 4 --leaves 2 --hosts 2 --spines 2 --cores 1 | ibweave compile -t - -e updn -o pods`,
	"dev/traffic.md": `
cp $examples/traffic/* .; cp fabric.ibnetdiscover fabric.txt; rm -r tables; ibweave compile -t fabric.txt -e updn -o tables`,
	"dev/simulator.md": `cp trees/* tables`,
	"dev/software-multicast.md": `cp trees/* tables
printf 'groups:\n  - {name: figure 3, senders: [host 5], receivers: [host 0, host 3, host 6, host 11, host 13]}\n' >figure3.yaml`,
	"report.md":             `gzip -1 <$page >page.wasm.gz`,
	"reference/counters.md": counters,
	"reference/drain.md":    `sed -i 's/MF0;spine00:IS5035.U1/director1/' fabric.txt; ibweave compile -t fabric.txt -e updn -o tables`,
	"reference/leave.md": `
ibweave join --ibsim --mgid ff12:a01d:fe80::1 --port-guid 0x100001
ibweave join --ibsim --mgid ff12:a01d:fe80::1 --port-guid 0x100005
ibweave join --ibsim --mgid ff12:a01d:fe80::1 --port-guid 0x100003 --send-only`,
	"reference/move.md":            `printf 'edits:\n  - unplug leaf00:37\n' >edits.yaml`,
	"reference/rails.md":           rails,
	"reference/report.md":          `gzip -1 <$page >page.wasm.gz`,
	"reference/papers/schedule.md": `cp trees/* tables`,

	"reference/sim.md": `
cp trees/* tables; cp trees/opensm-lfts.dump .
ibweave gen lattice --switches 16 -o lattice.txt; printf 'groups:\n  - {name: all, receivers: ["re:^host"]}\n' >groups.yaml`,
	"reference/slurm.md":  `sed 's/"\(n[0-9]*\) mlx5_0/"\1-ib0/' fabric.txt >named.txt`,
	"reference/whatif.md": "ibweave gen fattree --radix 6 --levels 2 -o fabric.txt\n" + shards,
}

// Files of several pages: counters of an example; hosts with two adapters; shards of a search.
const (
	counters = `
cp $examples/counters/* .; cp fabric.ibnetdiscover fabric.txt; rm -r tables; ibweave compile -t fabric.txt -e updn --labels -o tables
cp tables/fabric.ibnetdiscover fabric.txt; cp tables/opensm-lfts.dump .
cp tables/opensm-subnet.lst var/tmp/ibdiagnet2/ibdiagnet2.lst; cp tables/opensm.fdbs var/tmp/ibdiagnet2/ibdiagnet2.fdbs; cp after.txt var/tmp/ibdiagnet2`
	rails = `
ibweave gen tree --names site --leaves 2 --hosts 16 --rails 2 --spines 2 --ports 40 | sed 's/"node0/"n/' >fabric.txt
sed 's/"\(n[0-9]*\) mlx5_0/"A-\1/; s/"\(n[0-9]*\) mlx5_1/"B-\1/' fabric.txt >planes.txt; ibweave compile -t fabric.txt -e updn -o tables`
	shards = `
for i in 1 2; do ibweave whatif -t fabric.txt -e updn --fail links --depth 2 --shard $i/2 -o part-$i.json; done`
)

// smaller are parts of commands that run at another size or on the lab, and what runs instead.
var smaller = []struct{ was, is string }{
	{"--umad mlx5_0/1", "--ibsim"},
	{"--umad mlx5_0:1", "--ibsim"},
	{"--umad mlx5_0", "--ibsim"},
	{"squeue --json", "cat squeue.json"},
	{"sbatch ", "echo "},
	{"seq 1 40", "seq 1 2"},
	{"--umad ib0", "--ibsim"},
	{"0x0002c90300a1b2c3 --send-only", "0x100003 --send-only"},
	{"done > after.txt", "done > read.txt"},
	{"--shard 3/16 -o part-3.json", "--shard 2/2 -o part-2.json"},
	{"--interactive -o", "--interactive --compiler page.wasm.gz -o"},
	{"slurm -t fabric.txt --host-regexp", "slurm -t named.txt --host-regexp"},
	{"--radix 12 ", "--radix 6 "},
	{"--drop-links 40 ", "--drop-links 4 "},
	{"--dims 16x16", "--dims 5x5"},
	{"--burst 100 ", "--burst 1 "},
	{"-route 24 ", "-route 4 "},
	{"-mesh 30x30", "-mesh 4x4 -runs 1"},
	{"-audit 20 ", "-audit 4 "},
	{"-plugin 24,36 -runs 5", "-plugin 4 -runs 1"},
	{"-t irregular.txt -e opensm:dfsssp,opensm:lash,opensm:nue,layered", "-t irregular.txt -e opensm:dfsssp,layered --bisections 100"},
	{"--switches 64 --degree 5 --hosts 256", "--switches 16 --degree 5 --hosts 16"},
	{"-t FABRIC -e updn,layered,fattree,opensm:ftree,opensm:dfsssp --against updn --bisections 10000", "-t fabric.txt -e updn,layered,opensm:minhop --against updn --bisections 100"},
	{"-runs 3", "-runs 1"},
	{"--load 0.1:0.9:0.2 --bytes 2048 --pattern bisection --seed 1,2,3", "--load 0.1 --bytes 2048 --pattern bisection"},
	{"--load 0.3:0.9:0.2", "--load 0.3"},
	{"--load 0.1:0.9:0.1", "--load 0.1"},
	{"--load 0.05:0.6:0.05", "--load 0.05"},
	{"--load 0.2:1:0.2", "--load 0.2"},
	{"--load 0.3:0.9:0.1", "--load 0.3"},
	{"-m /dev/null", "-m /dev/null || [ $? = 139 ]"}, // it crashes, as the page says
	{"-e fattree,updn,layered,opensm:dfsssp,opensm:nue ", "-e updn,opensm:dfsssp "},
	{"--engines updn,minhop --vls 1,2 --svg jobs.svg", "--engines updn,minhop --svg jobs.svg"},
	{"--radix 56 --levels 3", "--radix 8 --levels 3"},
	{"--radix 40 ", "--radix 8 "},
	{"--radix 24 --levels 3", "--radix 8 --levels 3"},
	{"--drop-links 691", "--drop-links 20"},
	{"reproduce all --quick", "reproduce zhou2010/fig10 --quick"},
	{"reproduce zhou2010 ", "reproduce zhou2010/fig10 --quick "},
	{"reproduce zhou-conf --seed", "reproduce zhou-conf/masks --seed"},
	{"reproduce spam --seed", "reproduce spam/example --seed"},
	{"reproduce min --seed", "reproduce min/region --seed"},
	{"reproduce gerla1996 --seed", "reproduce gerla1996/headers --seed"},
	{"reproduce spam/theorem1", "reproduce spam/theorem1 --quick"},
}

// pageCommand is a command of a page.
type pageCommand struct {
	page, text string
	needs      string // why it does not run as it stands: a reason of unrun, or ""
	inline     bool   // in a sentence
}

var (
	spans = regexp.MustCompile("`([^`]+)`")
	// leads are what can stand before a program: a prompt, the hours of cron, variables.
	leads = regexp.MustCompile(`^(\$ |time |\*/\d+( \*){4} |[A-Z_]+=("[^"]*"|'[^']*'|\S*) )*`)
	// absolute finds files of a machine, which a test has in its folder.
	absolute = regexp.MustCompile(`(^|[\s>=])/(etc|var)/`)
	// harmless are the programs that run; others are in blocks that say what they need.
	harmless = strings.Fields("echo squeue ibweave ibweave-papers ibnetdiscover ibnodes ibdmchk dump_lfts for cat cp mv mkdir")
	others   = strings.Fields("go make sudo sh systemctl apt-get gzip sbatch squeue opensm")
	// verdicts are the lines by which a command says why its exit status is 1.
	verdicts = regexp.MustCompile(`(?m)^verdict +[a-z]|"verdict":|drifted;|cannot route|not support`)
)

// startsProgram returns true if a line of a block is a command, and not the first of a file of bounds.
func startsProgram(line string) bool {
	if strings.HasPrefix(line, "ibweave bound 1 ") {
		return false
	}
	word, _, _ := strings.Cut(leads.ReplaceAllString(line, ""), " ")
	return slices.Contains(harmless, word) || slices.Contains(others, word) || strings.HasPrefix(word, "scripts/")
}

// commandsOf lists the commands of a page: in indented blocks, in blocks that say what they need,
// and in sentences. Of a page of the reference they are its examples.
func commandsOf(t *testing.T, page string) (found []pageCommand) {
	t.Helper()
	data := short.Must(os.ReadFile(page))(t)
	text, reference := string(data), strings.Contains(page, "/reference/")
	if reference {
		_, text, _ = strings.Cut(text, "\n### Examples\n")
		text, _, _ = strings.Cut(text, "\n### ")
	}
	var fence, begun, sentences string
	inside := false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if words, ok := strings.CutPrefix(trimmed, "```"); ok {
			inside, fence = !inside, words
			continue
		}
		if !inside && !strings.HasPrefix(line, "    ") {
			sentences += line
			continue
		}
		needs := unrun.FindStringSubmatch(fence)
		if inside && slices.Contains([]string{"console", "go"}, fence) || begun == "" && !startsProgram(trimmed) && (!inside || needs == nil) {
			continue
		}
		begun += trimmed
		if head, ok := strings.CutSuffix(begun, `\`); ok {
			begun = head
			continue
		}
		c := pageCommand{page: page, text: begun}
		begun = ""
		switch {
		case inside && needs != nil:
			c.needs = needs[1]
		case inside && !reference:
			t.Errorf("%s: %q is in a block that no test runs; indent it, or ```sh needs=REASON", page, c.text)
		}
		found = append(found, c)
	}
	for _, span := range spans.FindAllStringSubmatch(sentences, -1) {
		if line := strings.ReplaceAll(strings.Join(strings.Fields(span[1]), " "), `\|`, "|"); strings.Contains(line, " ") && startsProgram(line) {
			found = append(found, pageCommand{page: page, text: line, inline: true})
		}
	}
	return found
}

// words splits a command as a shell does, up to a comment or the next program.
func words(command string) (list []string) {
	for _, w := range regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`).FindAllString(command, -1) {
		if w == "#" || w == "|" || w == "&&" {
			break
		}
		list = append(list, strings.Trim(w, `'"`))
	}
	return list
}

// check looks for what the command names: commands and flags of ibweave, tests, scripts, targets.
func (c *pageCommand) check(t *testing.T, known map[string]string) {
	t.Helper()
	for _, call := range invoked.FindAllStringSubmatch(c.text, -1) {
		if !checkCommand(t, c.page, known, call[1], call[2], call[3]) {
			t.Errorf("%s: %s has no command %s: %s", c.page, call[1], call[2], c.text)
		}
	}
	list := words(leads.ReplaceAllString(c.text, ""))
	switch {
	case slices.Equal(list[:min(2, len(list))], []string{"go", "test"}):
		for _, wrong := range checkGoTest(list[2:]) {
			t.Errorf("%s: %s: %s", c.page, wrong, c.text)
		}
	case list[0] == "make":
		makefile := short.Must(os.ReadFile("../Makefile"))(t)
		for _, target := range list[1:] {
			if !strings.Contains(target, "=") && !regexp.MustCompile(`(?m)^([a-z-]+ )*`+target+`( [a-z-]+)*:`).Match(makefile) {
				t.Errorf("%s: Makefile has no target %s", c.page, target)
			}
		}
	case list[0] == "go" || strings.HasPrefix(list[0], "scripts/"):
		for _, w := range list {
			if strings.HasPrefix(w, "./") || strings.HasPrefix(w, "scripts/") {
				if _, err := os.Stat(filepath.Join("..", w)); err != nil {
					t.Errorf("%s: %v: %s", c.page, err, c.text)
				}
			}
		}
	case c.needs == "" && !c.inline && !slices.Contains(harmless, list[0]):
		t.Errorf("%s: no test runs %q; ```sh needs=REASON", c.page, c.text)
	}
}

// testsOf has the names of the tests and benchmarks of a package, of their cases and of its flags.
type testsOf struct{ names, cases, flags []string }

var (
	testNames = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w*)\(`)
	caseNames = regexp.MustCompile(`"([^"\s]+)"`)
	testFlags = regexp.MustCompile(`\bflag\.\w+\((?:&\w+, )?"([^"]+)"`)
)

var readTests = func() func(pkg string) (testsOf, error) {
	read := make(map[string]testsOf)
	return func(pkg string) (p testsOf, err error) {
		if p, ok := read[pkg]; ok {
			return p, nil
		}
		files, err := filepath.Glob(filepath.Join("..", pkg, "*_test.go"))
		if err != nil || len(files) == 0 {
			return p, fmt.Errorf("%s has no tests", pkg)
		}
		p.flags = strings.Fields("run bench benchtime v count timeout short cpu race tags")
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return p, err
			}
			for _, found := range []struct {
				list *[]string
				what *regexp.Regexp
			}{{&p.names, testNames}, {&p.cases, caseNames}, {&p.flags, testFlags}} {
				for _, m := range found.what.FindAllStringSubmatch(string(data), -1) {
					*found.list = append(*found.list, m[1])
				}
			}
			if strings.Contains(string(data), `"pgregory.net/rapid"`) {
				p.flags = append(p.flags, "rapid.checks")
			}
		}
		scripts, err := filepath.Glob(filepath.Join("..", pkg, "testdata/script/*.txtar"))
		for _, s := range scripts {
			p.cases = append(p.cases, strings.TrimSuffix(filepath.Base(s), ".txtar"))
		}
		read[pkg] = p
		return p, err
	}
}()

// checkGoTest says what is wrong with the arguments of go test: each package has the flags, and
// each alternative of -run and -bench names tests of some package.
func checkGoTest(args []string) (wrong []string) {
	var packages []testsOf
	patterns := make(map[string]string)
	var flags []string
	for i := 0; i < len(args); i++ {
		name, isFlag := strings.CutPrefix(args[i], "-")
		if !isFlag {
			if args[i] == "./..." {
				return nil
			}
			p, err := readTests(args[i])
			if err != nil {
				return []string{err.Error()}
			}
			packages = append(packages, p)
			continue
		}
		name, value, has := strings.Cut(name, "=")
		if flags = append(flags, name); !has && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") && name != "v" && name != "short" && name != "race" {
			i++
			value = args[i]
		}
		patterns[name] = value
	}
	for _, p := range packages {
		for _, f := range flags {
			if !slices.Contains(p.flags, f) {
				wrong = append(wrong, "no flag -"+f)
			}
		}
	}
	if patterns["bench"] == "" && patterns["run"] == "^$" {
		wrong = append(wrong, "it runs nothing")
	}
	for _, kind := range []string{"run", "bench"} {
		for one := range strings.SplitSeq(patterns[kind], "|") {
			if one == "" || one == "^$" {
				continue
			}
			if !slices.ContainsFunc(packages, func(p testsOf) bool { return p.has(kind, one) }) {
				wrong = append(wrong, fmt.Sprintf("-%s %s matches nothing", kind, one))
			}
		}
	}
	return wrong
}

// has returns true if a package has what an alternative of -run or -bench names.
func (p *testsOf) has(kind, pattern string) bool {
	test, sub, _ := strings.Cut(pattern, "/")
	is := func(pattern string) func(string) bool { return regexp.MustCompile(pattern).MatchString }
	return slices.ContainsFunc(p.names, func(name string) bool {
		return strings.HasPrefix(name, "Benchmark") == (kind == "bench") && is(test)(name)
	}) && (sub == "" || slices.ContainsFunc(p.cases, is(sub)))
}

// Each command of the pages for developers, of the papers' pages and of the reference works.
// ibweave and the lab's programs run; so does scripts/bench. A
// test that go test names is there with its flags, and make test runs it; scripts and targets are
// there. In blocks of the manual which need a fabric, time or a browser, ibweave runs too.
func TestDevCommands(t *testing.T) {
	pages := manual(t)
	for _, pattern := range []string{"../docs/dev/*.md", "../docs/papers/*.md", "../docs/reproduction.md", "../docs/reference/*.md", "../docs/reference/papers/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		pages = append(pages, found...)
	}
	known := make(map[string]string)
	runs := make(map[string][]pageCommand)
	number := 0
	for _, page := range pages {
		for _, c := range commandsOf(t, page) {
			number++
			c.check(t, known)
			if !c.inline && c.needs != "root" && c.needs != "source" {
				runs[page] = append(runs[page], c)
			}
		}
	}
	if number < 400 {
		t.Errorf("%d commands", number)
	}
	r := newPageRunner(t)
	t.Run("run", func(t *testing.T) {
		all := slices.Sorted(maps.Keys(runs))
		// Pages for developers and of the papers are left to make test-all, and those that need the compiler for pages.
		usual := slices.DeleteFunc(slices.Clone(all), func(page string) bool {
			return strings.Contains(page, "/dev/") || strings.Contains(page, "/papers/") || strings.HasSuffix(page, "/report.md")
		})
		for _, page := range short.Usual(all, usual) {
			t.Run(strings.TrimPrefix(page, "../"), func(t *testing.T) {
				t.Parallel()
				r.run(t, page, runs[page])
			})
		}
	})
	for i, s := range smaller {
		if r.ran == len(runs) && !t.Failed() && !r.used[i] { // under make test-all, and not with -run of a page
			t.Errorf("no page has %q", s.was)
		}
	}
}

// pageRunner runs the commands of pages.
type pageRunner struct {
	env  []string
	base string // the folder with what all pages have
	mu   sync.Mutex
	used []bool // of smaller
	ran  int    // pages
}

func newPageRunner(t *testing.T) *pageRunner {
	t.Helper()
	short.NeedPrograms(t)
	bin := short.Must(programs())(t)
	r := &pageRunner{base: t.TempDir(), used: make([]bool, len(smaller))}
	here := short.Must(os.Getwd())(t)
	r.env = append(os.Environ(), "LD_LIBRARY_PATH="+bin+":"+os.Getenv("LD_LIBRARY_PATH"), "PATH="+bin+":"+os.Getenv("PATH"), "examples="+here)
	lab := t.TempDir()
	r.env = append(r.env, "lab="+lab)
	if out, status := r.shell(t, r.base, "set -e\n"+prepared[""]); status != 0 {
		t.Fatal(out)
	}
	if short.All() {
		r.env = append(r.env, "page="+short.Must(built.Module("page.wasm", "../cmd/ibweave-page"))(t))
	}
	start := `
set -e; mkdir -p $lab/lab/cache; cp tables/guid2lid $lab/lab/cache; cp tables/opensm.conf fabric.txt $lab
cd $lab; sh $examples/lab/lab.sh start fabric.txt opensm.conf`
	t.Cleanup(func() {
		if out, status := r.shell(t, lab, "sh $examples/lab/lab.sh stop"); status != 0 {
			t.Error(out)
		}
	})
	if out, status := r.shell(t, r.base, start); status != 0 {
		t.Fatal(out)
	}
	return r
}

func (r *pageRunner) shell(t *testing.T, dir, script string) (output string, status int) {
	t.Helper()
	return runIn(t, r.env, dir, "timeout", "300", "bash", "-o", "pipefail", "-c", script)
}

// script runs scripts/bench as a command does, with the test's programs.
func (r *pageRunner) script(t *testing.T, work, command string) {
	t.Helper()
	program := short.Must(built.Program("bench", "../scripts/bench"))(t)
	bin := short.Must(programs())(t)
	flags := " -ibweave " + bin + "/ibweave -library " + bin + "/libibweave-opensm.so"
	if strings.HasPrefix(command, "scripts/bench-plugin.sh") {
		flags += " -only plugin"
	}
	_, args, _ := strings.Cut(strings.TrimPrefix(command, "go run "), " ")
	if out, status := r.shell(t, work, program+flags+" "+args); status != 0 {
		t.Errorf("exit status %d of\n%s\n%s", status, command, out)
	}
}

// inLab lets a command use the lab.
const inLab = ". $lab/lab/env\n"

func (r *pageRunner) run(t *testing.T, page string, commands []pageCommand) {
	work := t.TempDir()
	short.Check(t, os.CopyFS(work, os.DirFS(r.base)))
	if script, ok := prepared[strings.TrimPrefix(page, "../docs/")]; ok {
		if out, status := r.shell(t, work, "set -e\n"+inLab+script); status != 0 {
			t.Fatalf("exit status %d of\n%s\n%s", status, script, out)
		}
	}
	r.mu.Lock()
	r.ran++
	r.mu.Unlock()
	done := make(map[string]bool)
	for _, c := range commands {
		if done[c.text] {
			continue
		}
		done[c.text] = true
		command := absolute.ReplaceAllString(leads.ReplaceAllString(c.text, ""), "$1$2/")
		for i, s := range smaller {
			if strings.Contains(command, s.was) {
				command = strings.ReplaceAll(command, s.was, s.is)
				r.mu.Lock()
				r.used[i] = true
				r.mu.Unlock()
			}
		}
		list := words(command)
		if list[0] == "scripts/bench.sh" || list[0] == "scripts/bench-plugin.sh" || strings.HasPrefix(command, "go run ./scripts/") {
			r.script(t, work, command)
			continue
		}
		if !slices.Contains(harmless, list[0]) {
			continue
		}
		out, status := r.shell(t, work, inLab+command)
		if status == 4 && strings.Contains(out, "this machine has no RDMA device") {
			continue // ibweave devices, where there is none
		}
		if status > 1 || status == 1 && !verdicts.MatchString(out) {
			t.Errorf("exit status %d of\n%s\n%s", status, command, out)
		}
	}
}
