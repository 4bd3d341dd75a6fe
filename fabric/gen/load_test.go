package gen_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
)

func TestMain(m *testing.M) {
	short.UseMemory()
	m.Run()
}

// TestLoad gives every made fabric, as text, to the real ibsim, and compares
// what the real ibnetdiscover then finds.
func TestLoad(t *testing.T) {
	short.NeedPrograms(t)
	ibsim, ibsimRun, ibnetdiscover := tool(t, "ibsim"), tool(t, "ibsim-run"), tool(t, "ibnetdiscover")
	loads := append(shapes(),
		shape{name: "hypercube 5 less 20 links", make: func() (*fabric.Fabric, error) {
			f, err := mesh.Hypercube(5, 1)
			if err != nil {
				return nil, err
			}
			return gen.DropLinks(f, 20, 1)
		}},
		shape{name: "mesh of 16 dimensions", make: func() (*fabric.Fabric, error) {
			return mesh.Generate(mesh.Spec{Dims: append(slices.Repeat([]int{1}, 13), 2, 2, 11), Hosts: 2})
		}},
		shape{name: "largest switch", make: func() (*fabric.Fabric, error) {
			return mesh.Generate(mesh.Spec{Dims: []int{2}, Hosts: 250})
		}},
		shape{name: "directors with all that sites have", make: func() (*fabric.Fabric, error) {
			f, err := gen.Tree(gen.TreeSpec{Ports: 16, Pods: []int{2, 1}, Hosts: 4, Spines: 4, Groups: 2, Cores: 3, Directors: true})
			if err != nil {
				return nil, err
			}
			return gen.Options{Fill: 70, ServiceHosts: 2, DropLinks: 1, Names: "mixed", AggregationNodes: true}.Apply(f)
		}},
		shape{name: "tree with all that sites have", make: func() (*fabric.Fabric, error) {
			f, err := gen.Tree(gen.TreeSpec{Ports: 12, Pods: []int{2, 1}, Hosts: 2, Rails: 2, RailSpines: true, Spines: 2, Cores: 1})
			if err != nil {
				return nil, err
			}
			return gen.Options{Names: "site", AggregationNodes: true}.Apply(f)
		}},
	)
	for i, load := range loads {
		f := short.Must(load.make())(t)
		if f.NumNodes() > short.Of(600, 24) { // ibsim reads byte by byte and searches nodes one by one
			continue
		}
		t.Run(load.name, func(t *testing.T) {
			dir := t.TempDir()
			text := topology.Append(nil, f)
			file := filepath.Join(dir, "fabric")
			short.Check(t, os.WriteFile(file, text, 0o600))
			env := append(os.Environ(), fmt.Sprintf("IBSIM_SOCKNAME=ibweave-gen-%d-%d", os.Getpid(), i))

			// timeout ends ibsim even if this test is killed.
			sim := exec.Command("timeout", "300", ibsim, "-s", "-n", "-N", strconv.Itoa(f.NumNodes()),
				"-S", strconv.Itoa(f.NumSwitches()), "-P", strconv.Itoa(f.NumPorts()), "-L", "49152", "-M", "16383", file)
			var stdout, stderr lockedBuffer
			sim.Dir, sim.Env, sim.Stdout, sim.Stderr = dir, env, &stdout, &stderr
			short.Check(t, sim.Start())
			ended := make(chan error, 1)
			go func() { ended <- sim.Wait() }()
			stop := func() {
				sim.Process.Signal(syscall.SIGTERM)
				<-ended
			}
			short.Await(t, func() bool {
				select {
				case err := <-ended:
					t.Fatalf("ibsim: %v\n%s%s", err, stdout.String(), stderr.String())
				default:
				}
				return strings.Contains(stdout.String(), "Network simulator ready")
			}, "ibsim is not ready")

			discover := exec.Command("timeout", "120", ibsimRun, ibnetdiscover, "-t", "10000")
			discover.Dir, discover.Env = dir, env
			found, err := discover.Output()
			stop()
			if err != nil {
				t.Fatalf("ibnetdiscover: %v\n%s", err, stderr.String())
			}
			short.Equal(t, stderr.String(), "", "ibsim warns")
			g, problems, err := topology.Parse("ibnetdiscover", found, topology.Options{})
			if err != nil || len(problems) > 0 {
				t.Fatalf("what ibnetdiscover printed: %v %v", err, problems)
			}
			short.Diff(t, records(g), records(f), "made and found in ibsim (-made +found)")
		})
	}
}

// TestText checks that the text of a made fabric reads back as that fabric,
// in the same order.
func TestText(t *testing.T) {
	for _, s := range shapes() {
		f := short.Must(s.make())(t)
		g, problems, err := topology.Parse("text", topology.Append(nil, f), topology.Options{})
		if err != nil || len(problems) > 0 {
			t.Errorf("%s: %v %v", s.name, err, problems)
			continue
		}
		if !reflect.DeepEqual(f, g) {
			t.Errorf("%s: reads back as another fabric:\n%s", s.name, cmp.Diff(records(f), records(g)))
		}
	}
}

// records describes everything about a fabric but the order of its nodes.
func records(f *fabric.Fabric) []string {
	var lines []string
	for n := range fabric.NodeID(f.NumNodes()) {
		node := *f.Node(n)
		node.Order = 0
		lines = append(lines, fmt.Sprintf("%+v", node))
		for num := fabric.PortNum(0); num <= node.NumPorts; num++ {
			p := f.Port(n, num)
			to := "nothing"
			if peer := f.Peer(p); peer != fabric.NoPort {
				to = f.PortName(peer)
			}
			lines = append(lines, fmt.Sprintf("%s %s LID %d LMC %d leads to %s with %s", f.PortName(p), f.PortGUID(p), f.LID(p), f.LMC(p), to, f.Link(p)))
		}
	}
	return lines
}

// tool finds a program of ibsim-utils or infiniband-diags, which some systems
// keep in a folder that is not in everybody's PATH.
func tool(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	path, err := exec.LookPath("/usr/sbin/" + name)
	if err != nil {
		t.Fatalf("%s is not installed: apt-get install ibsim-utils infiniband-diags", name)
	}
	return path
}

// lockedBuffer collects the output of a program while it runs.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
