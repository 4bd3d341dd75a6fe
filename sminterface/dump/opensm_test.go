package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibweave/ibweave/fabric"
)

// simulator is a running ibsim, on sockets and in a folder of its own.
type simulator struct {
	t       *testing.T
	dir     string
	env     []string
	preload string
}

var simulators atomic.Int64

// startSimulator runs ibsim with a fabric until the test ends.
func startSimulator(t *testing.T, f *fabric.Fabric) *simulator {
	t.Helper()
	list, err := filepath.Glob("/usr/lib/*/umad2sim/libumad2sim.so")
	if err != nil || len(list) == 0 {
		t.Fatalf("no libumad2sim.so: install ibsim-utils (%v)", err)
	}
	dir := t.TempDir()
	topology := filepath.Join(dir, "fabric.topo")
	if err := os.WriteFile(topology, simulatorText(f), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &simulator{t: t, dir: dir, preload: list[0]}
	s.env = append(os.Environ(), fmt.Sprintf("IBSIM_SOCKNAME=ibweave-dump-%d-%d", os.Getpid(), simulators.Add(1)))
	cmd := exec.Command("ibsim", "-s", "-n", "-N", "20000", "-S", "5000", "-P", "300000", "-L", "49152", "-M", "1024", topology)
	cmd.Env, cmd.Dir = s.env, dir
	stdin, err := cmd.StdinPipe() // ibsim ends with its standard input
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("install ibsim: %v", err)
	}
	ready := make(chan string, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all bytes.Buffer
		b := make([]byte, 4096)
		told := false
		for {
			n, err := out.Read(b)
			all.Write(b[:n])
			if !told && (err != nil || bytes.Contains(all.Bytes(), []byte("Network simulator ready"))) {
				told = true
				ready <- all.String()
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		stdin.Close()
		cmd.Process.Kill()
		<-done
		cmd.Wait()
	})
	select {
	case text := <-ready:
		if !strings.Contains(text, "Network simulator ready") {
			t.Fatalf("ibsim ended:\n%s", text)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("ibsim is not ready after 30 s")
	}
	time.Sleep(50 * time.Millisecond) // it opens its sockets after that line
	return s
}

// run runs a program of infiniband-diags or OpenSM on the simulated fabric and
// returns its standard output.
func (s *simulator) run(name string, arg ...string) []byte {
	s.t.Helper()
	cmd := exec.Command(name, arg...)
	cmd.Env = append(s.env, "LD_PRELOAD="+s.preload, "OSM_TMP_DIR="+s.dir, "OSM_CACHE_DIR="+s.dir)
	cmd.Dir = s.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("install %s: %v", name, err)
	}
	if err != nil {
		s.t.Fatalf("%s %v: %v\n%s%s", name, arg, err, out, &stderr)
	}
	return out
}

// opensm routes the fabric once. Its dumps are then in the folder.
func (s *simulator) opensm(arg ...string) {
	s.t.Helper()
	s.run("opensm", append([]string{"-o", "-D", "0x43", "-f", "opensm.log"}, arg...)...)
	log := s.file("opensm.log")
	if !bytes.Contains(log, []byte("SUBNET UP")) || bytes.Contains(log, []byte("ERR ")) {
		s.t.Fatalf("opensm %v:\n%s", arg, log)
	}
}

// file is a file of the folder.
func (s *simulator) file(name string) []byte {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// simulatorText is ibnetdiscover text of a fabric, as far as ibsim needs it.
func simulatorText(f *fabric.Fabric) []byte {
	var b bytes.Buffer
	id := func(n fabric.NodeID) string {
		return fmt.Sprintf("%c-%016x", "?HSR"[f.Node(n).Type], uint64(f.Node(n).GUID))
	}
	for n := range fabric.NodeID(f.NumNodes()) {
		node := f.Node(n)
		fmt.Fprintf(&b, "vendid=%#x\ndevid=%#x\nsysimgguid=%#x\n", node.VendorID, node.DeviceID, uint64(node.SystemGUID))
		switch node.Type {
		case fabric.Switch:
			port0 := "base"
			if node.EnhancedPort0 {
				port0 = "enhanced"
			}
			p := f.PortBase(n)
			fmt.Fprintf(&b, "switchguid=%#x(%x)\nSwitch\t%d %q\t\t# \"%s\" %s port 0 lid %d lmc %d\n",
				uint64(node.GUID), uint64(f.PortGUID(p)), node.NumPorts, id(n), node.Description, port0, f.LID(p), f.LMC(p))
		case fabric.CA:
			fmt.Fprintf(&b, "caguid=%#x\nCa\t%d %q\t\t# \"%s\"\n", uint64(node.GUID), node.NumPorts, id(n), node.Description)
		case fabric.Router:
			fmt.Fprintf(&b, "rtguid=%#x\nRt\t%d %q\t\t# \"%s\"\n", uint64(node.GUID), node.NumPorts, id(n), node.Description)
		}
		for num := fabric.PortNum(1); num <= node.NumPorts; num++ {
			p := f.Port(n, num)
			peer := f.Peer(p)
			if peer == fabric.NoPort {
				continue
			}
			fmt.Fprintf(&b, "[%d]", num)
			if node.Type != fabric.Switch {
				fmt.Fprintf(&b, "(%x)", uint64(f.PortGUID(p)))
			}
			fmt.Fprintf(&b, "\t%q[%d]\t\t#", id(f.Owner(peer)), f.Num(peer))
			if node.Type != fabric.Switch {
				fmt.Fprintf(&b, " lid %d lmc %d", f.LID(p), f.LMC(p))
			}
			fmt.Fprintf(&b, " \"peer\" lid 0 %s\n", f.Link(p))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// text is what a writer writes.
func text(t testing.TB, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
