package examples

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// slurmConfig is a Slurm of one node, which takes all jobs of the array at once. Its ports
// are its own, and jobs need no munged: only programs of this machine can reach them.
const slurmConfig = `ClusterName=ibweave
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=%[4]d
SlurmdPort=%[5]d
SlurmUser=%[2]s
SlurmdUser=%[2]s
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1
StateSaveLocation=%[3]s/state
SlurmdSpoolDir=%[3]s/spool
SlurmctldPidFile=%[3]s/slurmctld.pid
SlurmdPidFile=%[3]s/slurmd.pid
SlurmctldLogFile=%[3]s/slurmctld.log
SlurmdLogFile=%[3]s/slurmd.log
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=%[1]s NodeAddr=127.0.0.1 CPUs=%[6]d State=UNKNOWN
PartitionName=all OverSubscribe=FORCE:4 Nodes=ALL Default=YES State=UP MaxTime=INFINITE
`

// startSlurm starts the real slurmctld and slurmd, and ends them with the test.
func startSlurm(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	port := 20000 + 2*(os.Getpid()%10000)
	config := filepath.Join(dir, "slurm.conf")
	text := fmt.Sprintf(slurmConfig, host, me.Username, dir, port, port+1, runtime.NumCPU())
	if err := os.WriteFile(config, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"state", "spool"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SLURM_CONF", config)
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
	for _, args := range [][]string{{"slurmctld", "-c", "-D"}, {"slurmd", "-D", "-N", host}} {
		var said bytes.Buffer
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Signal(os.Interrupt)
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			select {
			case <-done:
			case <-time.After(20 * time.Second):
				cmd.Process.Kill()
				<-done
			}
			if t.Failed() {
				t.Logf("%s: %s", args[0], said.Bytes())
			}
		})
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		out, _ := exec.Command("sinfo", "--noheader", "--format", "%T").CombinedOutput()
		if string(bytes.TrimSpace(out)) == "idle" {
			// slurmctld looks for jobs every two seconds, and did so just now; sbatch --wait
			// looks for their end after 2 and after 10 seconds.
			time.Sleep(time.Second)
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no node is ready: %s", out)
		}
	}
}

// TestSlurm runs the job array of whatif-slurm in a Slurm of its own: the shards
// together are what one run without shards writes.
func TestSlurm(t *testing.T) {
	startSlurm(t)
	const dir = "whatif-slurm"
	work := t.TempDir()
	if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	args := generated.FindSubmatch(readme)
	if args == nil {
		t.Fatal("README.md does not say how the fabric was made")
	}
	if out, status := runShell(t, work, "-c", "mv fabric.ibnetdiscover was && ibweave "+string(args[1])+" 2>/dev/null && cmp was fabric.ibnetdiscover"); status != 0 {
		t.Errorf("ibweave %s makes another fabric: %s", args[1], out)
	}
	out, status := runShell(t, work, "submit.sh")
	got := out + fmt.Sprintf("exit status  %d\n", status)
	want, err := os.ReadFile(filepath.Join(dir, "expected.txt"))
	if err != nil {
		t.Fatal(err)
	}
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
	if out != "" {
		t.Error(out)
	}
}
