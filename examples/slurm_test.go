package examples

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
)

// slurmConfig is a Slurm of one node, which takes all jobs of the array at once. Its ports
// are its own, and jobs need no munged: only programs of this machine can reach them.
//
//go:embed testdata/slurm.conf
var slurmConfig string

// slurm is the variable that tells Slurm's programs which Slurm they ask.
type slurm string

// slurms counts the Slurms of this process.
var slurms atomic.Int32

// startSlurm starts the real slurmctld, which knows the nodes of a NodeName line, and other
// daemons. They end with the test. files are beside slurm.conf, by name.
func startSlurm(t *testing.T, nodes, settings string, files map[string]string, daemons ...[]string) slurm {
	t.Helper()
	short.NeedAll(t)
	dir := t.TempDir()
	me := short.Must(user.Current())(t)
	port := 20000 + 2*((8*os.Getpid()+int(slurms.Add(1)))%10000)
	config := filepath.Join(dir, "slurm.conf")
	text := fmt.Sprintf(slurmConfig, short.Must(os.Hostname())(t), me.Username, dir, port, port+1, nodes) + settings
	short.Check(t, os.WriteFile(config, []byte(text), 0o666))
	for name, text := range files {
		short.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	for _, name := range []string{"state", "spool"} {
		short.Check(t, os.Mkdir(filepath.Join(dir, name), 0o777))
	}
	s := slurm("SLURM_CONF=" + config)
	for _, args := range append([][]string{{"slurmctld", "-c", "-D"}}, daemons...) {
		var said bytes.Buffer
		cmd := s.command(args...)
		cmd.Stdout, cmd.Stderr = &said, &said
		short.Check(t, cmd.Start())
		t.Cleanup(func() {
			cmd.Process.Signal(os.Interrupt)
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			select {
			case <-done:
			case <-time.After(5 * time.Minute): // it hangs
				cmd.Process.Kill()
				<-done
			}
			if t.Failed() {
				t.Logf("%s: %s", args[0], said.Bytes())
			}
		})
	}
	return s
}

// command is one of Slurm's programs.
func (s slurm) command(args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), string(s))
	return cmd
}

// await waits until a command prints what it should.
func (s slurm) await(t *testing.T, done func(out string) bool, args ...string) (said string) {
	t.Helper()
	short.Await(t, func() bool {
		out, _ := s.command(args...).CombinedOutput()
		said = string(out)
		return done(said)
	}, args)
	return said
}

// TestSlurm runs the job array of whatif-slurm in a Slurm of its own: the shards
// together are what one run without shards writes.
func TestSlurm(t *testing.T) {
	t.Parallel()
	host := short.Must(os.Hostname())(t)
	s := startSlurm(t, fmt.Sprintf("%s NodeAddr=127.0.0.1 CPUs=%d State=UNKNOWN", host, runtime.NumCPU()), "", nil, []string{"slurmd", "-D", "-N", host})
	s.await(t, func(out string) bool { return strings.TrimSpace(out) == "idle" }, "sinfo", "--noheader", "--format", "%T")
	// slurmctld looks for jobs every two seconds, and did so just now; sbatch --wait looks for
	// their end after 2 and after 10 seconds.
	time.Sleep(time.Second)
	const dir = "whatif-slurm"
	work := t.TempDir()
	short.Check(t, os.CopyFS(work, os.DirFS(dir)))
	readme := short.Must(os.ReadFile(filepath.Join(dir, "README.md")))(t)
	args := generated.FindSubmatch(readme)
	if args == nil {
		t.Fatal("README.md does not say how the fabric was made")
	}
	if out, status := runShell(t, work, "-c", "mv fabric.ibnetdiscover was && ibweave "+string(args[1])+" 2>/dev/null && cmp was fabric.ibnetdiscover"); status != 0 {
		t.Errorf("ibweave %s makes another fabric: %s", args[1], out)
	}
	out, status := runShellWith(t, string(s), work, "submit.sh")
	got := out + fmt.Sprintf("exit status  %d\n", status)
	want := short.Must(os.ReadFile(filepath.Join(dir, "expected.txt")))(t)
	if d := cmp.Diff(string(want), got); d != "" {
		logs, _ := filepath.Glob(filepath.Join(work, "shard-*.log"))
		for _, name := range logs {
			text, _ := os.ReadFile(name)
			t.Logf("%s: %s", filepath.Base(name), text)
		}
		t.Fatalf("submit.sh prints other text (-expected.txt +now):\n%s", d)
	}
	if shards, _ := filepath.Glob(filepath.Join(work, "shard-*.json")); len(shards) != 4 {
		t.Errorf("%d shards, want 4", len(shards))
	}
	out, _ = runShell(t, work, "-c", "ibweave whatif -t fabric.ibnetdiscover -e updn --fail links --depth 2 -o one.json >/dev/null; cmp one.json all.json")
	short.Equal(t, out, "")
	checkSlurmJobs(t, s, host)
}

// checkSlurmJobs has ibweave traffic find the host of a job in what Slurm prints of its jobs.
func checkSlurmJobs(t *testing.T, s slurm, host string) {
	t.Helper()
	work := t.TempDir()
	short.Check(t, os.CopyFS(work, os.DirFS("traffic")))
	script := string(short.Must(os.ReadFile("testdata/job.sh"))(t))
	out, _ := runShellWith(t, string(s), work, "-c", script, "sh", host)
	short.Equal(t, out, strings.Repeat("a    1      1      1M\nfree         19 of 20 hosts\n", 3))
}

// slurmTopology takes a capture for TestSlurmTopology in place of the made fabrics.
var slurmTopology = flag.String("slurm-topology", "", "`FILE` to test ibweave slurm with")

// TestSlurmTopology gives the real slurmctld the files that ibweave slurm writes. It shows the
// same groups with the same hosts, and no other.
func TestSlurmTopology(t *testing.T) {
	short.NeedAll(t)
	t.Parallel()
	kinds := map[string]string{
		"rails":    "tree --leaves 3 --rails 2 --hosts 6 --spines 2 --parallel 3 --ports 24 --names site --aggregation-nodes",
		"pods":     "tree --pods 3 --leaves 3,2,4 --hosts 12 --spines 4 --cores 4 --names site --service-hosts 2 --fill 70",
		"director": "director --pods 3 --leaves 4 --line-chips 2 --spine-chips 2 --names mixed",
	}
	for _, name := range short.Keys(kinds, "pods") {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			make := "ibweave gen " + kinds[name] + " > fabric.txt"
			if *slurmTopology != "" {
				make = "ln -s " + *slurmTopology + " fabric.txt"
			}
			if out, status := runShell(t, dir, "-c", make+" && ibweave slurm -t fabric.txt -o topology.conf 2>&1 && ibweave slurm -t fabric.txt --format json -o topology.json 2>&1"); status != 0 {
				t.Fatal(out)
			}
			checkSlurmTopology(t, dir)
		})
	}
}

// checkSlurmTopology compares what Slurm makes of topology.conf with topology.json.
func checkSlurmTopology(t *testing.T, dir string) {
	t.Helper()
	type group struct {
		Name            string
		Level           int
		Hosts, Children []string
	}
	var doc struct{ Groups []group }
	data := short.Must(os.ReadFile(filepath.Join(dir, "topology.json")))(t)
	short.Check(t, json.Unmarshal(data, &doc))
	conf := short.Must(os.ReadFile(filepath.Join(dir, "topology.conf")))(t)
	want := make(map[string]group)
	var nodes []string
	for _, g := range doc.Groups {
		slices.Sort(g.Hosts)
		slices.Sort(g.Children)
		want[g.Name] = g
		nodes = append(nodes, g.Hosts...)
	}
	s := startSlurm(t, strings.Join(nodes, ",")+" NodeAddr=127.0.0.1 State=UNKNOWN", "TopologyPlugin=topology/tree\n", map[string]string{"topology.conf": string(conf)})
	out := s.await(t, func(out string) bool { return strings.Contains(out, "SwitchName=") }, "scontrol", "--oneliner", "show", "topology")
	expand := func(list string) []string {
		if list == "" {
			return []string{}
		}
		return s.names(t, list)
	}
	got := make(map[string]group)
	for _, m := range regexp.MustCompile(`SwitchName=(\S+) Level=(\d+) LinkSpeed=1(?: Nodes=(\S+))?(?: Switches=(\S+))?`).FindAllStringSubmatch(out, -1) {
		level, _ := strconv.Atoi(m[2])
		g := group{m[1], level, expand(m[3]), expand(m[4])}
		if level > 0 {
			g.Hosts = []string{} // all below it
		}
		got[g.Name] = g
	}
	short.Diff(t, got, want, "Slurm shows another topology", conf)
}

// names expands a list of names as Slurm does, in the order of their bytes.
func (s slurm) names(t *testing.T, list string) []string {
	t.Helper()
	names := short.Must(s.command("scontrol", "show", "hostnames", list).Output())(t)
	return slices.Sorted(slices.Values(strings.Fields(string(names))))
}

// slurmPartitions has what slurm.conf can say of partitions: features, node sets, other names of
// hosts, defaults and lines that go on.
//
//go:embed testdata/slurm-partitions.conf
var slurmPartitions string

// TestSlurmPartitions holds the groups that are read from slurm.conf to the partitions of a real
// slurmctld, and to what scontrol shows of them.
func TestSlurmPartitions(t *testing.T) {
	t.Parallel()
	const name = "host-groups/fabric.ibnetdiscover"
	data := short.Must(os.ReadFile(name))(t)
	f, _ := short.Must2(topology.Parse(name, data, topology.Options{}))(t)
	ctl := startSlurm(t, slurmPartitions, "", map[string]string{"more.conf": "NodeSet=old Feature=old\nPartitionName=DEFAULT Nodes=node0005\n"})
	shown := ctl.await(t, func(out string) bool { return strings.Contains(out, "PartitionName=both") }, "scontrol", "--oneliner", "show", "partition")
	nodes := ctl.await(t, func(string) bool { return true }, "scontrol", "--oneliner", "show", "node")
	hosts := make(map[string]string) // by node
	for _, m := range regexp.MustCompile(`NodeName=(\S+).* NodeHostName=(\S+)`).FindAllStringSubmatch(nodes, -1) {
		hosts[m[1]] = m[2]
	}
	want := make(map[string][]string) // hosts by partition
	for _, m := range regexp.MustCompile(`PartitionName=(\S+).* Nodes=(\S+)`).FindAllStringSubmatch(shown, -1) {
		for _, node := range ctl.names(t, m[2]) {
			want[m[1]] = append(want[m[1]], hosts[node])
		}
		slices.Sort(want[m[1]])
	}
	config := strings.TrimPrefix(string(ctl), "SLURM_CONF=")
	list := filepath.Join(t.TempDir(), "shown") // with the names of hosts, as a site without other ones has them
	text := strings.NewReplacer("gpu[1-12]", "node[0025-0036]", "gpu12", "node0036", "gpu3", "node0027").Replace(shown)
	short.Check(t, os.WriteFile(list, []byte(text), 0o666))
	for _, file := range []string{config, list} {
		x := short.Must(groups.Read("groups.yaml", func(name string) ([]byte, error) {
			if name == "groups.yaml" {
				return []byte("partition: slurm:" + file), nil
			}
			return os.ReadFile(name)
		}))(t)
		s := short.Must(x.In(f))(t)
		got := make(map[string][]string)
		for i := range s.Groups {
			for _, n := range s.Groups[i].Nodes {
				if g := &s.Groups[i]; g.Name != groups.NoGroup {
					got[g.Name] = append(got[g.Name], strings.Fields(f.Name(n).Text)[0])
				}
			}
		}
		short.Diff(t, got, want, "partitions of", filepath.Base(file), "(-Slurm +ours)", shown)
	}
	if len(want) != 5 || len(want["all"]) != 36 || len(want["sets"]) != 13 {
		t.Errorf("Slurm shows %v", want)
	}
}
