package dump

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

// simulator is an ibsim with a fabric in it. Programs run as if on its first
// switch.
type simulator struct {
	*ibsim.Sim
	t   *testing.T
	dir string // of what OpenSM writes
}

// startSimulator runs ibsim until the test ends.
func startSimulator(t *testing.T, f *fabric.Fabric) *simulator {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "fabric.topo")
	writeFile(t, file, text(t, func(w io.Writer) error { return topology.Write(w, f) }))
	s := short.Must(ibsim.Start(t.Context(), file, ibsim.Config{
		Nodes: f.NumNodes(), Switches: f.NumSwitches(), Ports: f.NumPorts(),
		Host: fmt.Sprintf("S-%016x", uint64(f.Node(0).GUID)),
	}))(t)
	t.Cleanup(func() {
		short.Check(t, s.Close())
	})
	return &simulator{s, t, filepath.Join(dir, "opensm")}
}

// opensm routes the fabric once, with all dumps.
func (s *simulator) opensm(cfg ibsim.OpenSMConfig) {
	s.t.Helper()
	cfg.Dir, cfg.Flags = s.dir, 0x43
	run := short.Must(ibsim.RunOpenSM(s.t.Context(), s.Sim, cfg))(s.t)
	if run.Engine != cfg.Engine || run.NumErrors > 0 {
		s.t.Fatalf("%+v, want engine %s and no errors", run, cfg.Engine)
	}
}

// output runs another program and returns its standard output.
func (s *simulator) output(name string, arg ...string) []byte {
	s.t.Helper()
	cmd := s.Command(s.t.Context(), name, arg...)
	var out bytes.Buffer
	cmd.Stdout = &out
	short.Check(s.t, s.Run(s.t.Context(), cmd))
	return out.Bytes()
}

// file is a file that OpenSM wrote.
func (s *simulator) file(name string) []byte {
	s.t.Helper()
	b := short.Must(os.ReadFile(filepath.Join(s.dir, name)))(s.t)
	return b
}

// text is what a writer writes.
func text(t rapid.TB, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	short.Check(t, write(&b))
	return b.Bytes()
}
