package plugin

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
)

// TestHostileSubnet gives the plugin subnets in which a few fields, of any node or port, are whatever a device may claim:
// each ends in tables that are proven or in an error, never in a panic, and no line of a log acts on a terminal.
func TestHostileSubnet(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2})
	f = withLIDs(t, f, err)
	rnd := rand.New(rand.NewPCG(9, 9))
	clean := snapshotOf(f, rnd)
	o := open(t, "flap: {count: 2}\n")
	refused := 0
	for i := range short.Of(3000, 300) {
		s := copied(clean)
		for range 1 + rnd.IntN(3) {
			n, p := &s.Nodes[rnd.IntN(len(s.Nodes))], &s.Ports[rnd.IntN(len(s.Ports))]
			other, port := s.Nodes[rnd.IntN(len(s.Nodes))], s.Ports[rnd.IntN(len(s.Ports))]
			switch rnd.IntN(14) {
			case 0:
				n.GUID = other.GUID
			case 1:
				n.GUID = 0
			case 2:
				n.Type = uint8(rnd.IntN(256))
			case 3:
				n.NumPorts = uint8(rnd.IntN(256))
			case 4:
				n.LinearCap = uint16(rnd.IntN(1 << 16))
			case 5:
				n.Description = "\x1b[2J\r\n\x00" + other.Description
			case 6:
				n.SystemGUID = fabric.GUID(rnd.Uint64())
			case 7:
				p.LID = port.LID
			case 8:
				p.LID = fabric.LID(rnd.IntN(1 << 16))
			case 9:
				p.LMC = uint8(rnd.IntN(256))
			case 10:
				p.Peer, p.Num = int32(rnd.IntN(len(s.Nodes)+2))-1, uint8(rnd.IntN(256))
			case 11:
				p.GUID = port.GUID
			case 12:
				p.Link = fabric.Link{Width: uint8(rnd.IntN(256)), Speed: fabric.Speed(rnd.IntN(256))}
			case 13:
				p.VLs, p.OpVLs = uint8(rnd.IntN(256)), uint8(rnd.IntN(256))
			}
		}
		_, err := o.Route(o.engine("updn"), s)
		var e *Error
		if errors.As(err, &e) {
			if refused++; e.Code == Panicked {
				t.Fatalf("subnet %d: %v", i, err)
			}
		}
	}
	if refused == 0 {
		t.Error("no subnet was refused")
	}
	for _, line := range o.lines {
		if strings.ContainsAny(line, "\x1b\r\n\x00") {
			t.Errorf("OpenSM's log has %q", line)
		}
	}
	if strings.ContainsAny(o.ownLog(t), "\x1b\r\x00") {
		t.Error("our log has what acts on a terminal")
	}
}
