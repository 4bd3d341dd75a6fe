package capture_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// A port that came up with the LID of another one is the intruder, whichever of the two a text has first, and the message
// has the LID that the tables lead to it. Where tables do not tell, the first by GUID keeps the LID.
func TestSettleLIDs(t *testing.T) {
	made := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}))(t)
	e := short.Must(compile.EngineByName("minhop"))(t)
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		routed := short.Must(compile.Run(t.Context(), made, e, compile.Options{LIDs: lft.LIDOptions{LMC: int(seed % 3)}}))(t).Routing
		f, tables := routed.Fabric, routed.Tables
		ports := f.CAPorts()
		if seed%4 == 3 { // switches have an LMC of 0
			ports = nil
			for s := range fabric.NodeID(f.NumSwitches()) {
				ports = append(ports, f.PortBase(s))
			}
		}
		out, owner := ports[rng.IntN(len(ports))], ports[rng.IntN(len(ports))]
		at := f.Owner(f.Attachment(out))
		if at == f.Owner(f.Attachment(owner)) {
			continue
		}
		lid := f.LID(owner)
		// read is the state of a text that has the port of gone behind that of kept.
		read := func(gone, kept fabric.PortID, t *lft.Tables) *state.State {
			base, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
			for p := range fabric.PortID(f.NumPorts()) {
				base[p], lmc[p] = f.LID(p), f.LMC(p)
			}
			base[gone], base[kept] = 0, lid
			g, err := f.WithLIDs(base, lmc)
			if err != nil {
				panic(err)
			}
			return &state.State{Fabric: g, Tables: t, Manager: fabric.NoPort, Problems: []fabric.Problem{
				{Kind: fabric.DuplicateLID, Node: g.Node(g.Owner(gone)).GUID, Port: g.Num(gone), LID: lid, Count: 1}}}
		}
		split := tables.Clone() // some switches lead to each of them
		split.Row(at)[lid] = split.Row(at)[f.LID(out)]
		for name, tables := range map[string]*lft.Tables{"whole": tables, "none": nil, "split": split} {
			var text [2]string
			for i, s := range []*state.State{read(out, owner, tables), read(owner, out, tables)} {
				g, findings := capture.SettleLIDs(s)
				keeps := owner
				if tables != routed.Tables {
					keeps = min(owner, out)
				}
				other := out + owner - keeps
				if g.LIDPort(lid) != keeps || g.LID(keeps) != lid || g.LID(other) != 0 || len(findings) != 1 || findings[0].Ports[0] != verify.EndpointOf(g, other) {
					t.Fatalf("seed %d, %s: %s keeps LID %d, want %s: %v", seed, name, g.PortName(g.LIDPort(lid)), lid, g.PortName(keeps), findings)
				}
				text[i] = findings[0].Message
			}
			if text[0] != text[1] {
				t.Errorf("seed %d, %s: (-one order +other)\n%s", seed, name, cmp.Diff(text[0], text[1]))
			}
			want := fmt.Sprintf("have LID %d; ", lid)
			if name == "whole" {
				want = fmt.Sprintf("is the intruder: it has LID %d, which the tables lead to %s", lid, f.PortName(owner))
				if back := fmt.Sprintf("the tables have LID %d for it, ", f.LID(out)); !strings.Contains(text[0], back) {
					t.Errorf("seed %d: no %q in %q", seed, back, text[0])
				}
			}
			if !strings.Contains(text[0], want) || !strings.Contains(text[0], f.PortName(out)) || !strings.Contains(text[0], f.PortName(owner)) {
				t.Errorf("seed %d, %s: no %q in %q", seed, name, want, text[0])
			}
		}
	}
}
