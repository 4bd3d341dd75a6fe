package lft

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// Path follows a packet from end port src to a LID. It appends to path the ports by which the
// packet leaves: src, unless it is port 0 of a switch, and one port of each switch on the way,
// at most one more than there are switches. If lost, the error says where; path ends there.
func (t *Tables) Path(f *fabric.Fabric, src fabric.PortID, lid fabric.LID, path []fabric.PortID) ([]fabric.PortID, error) {
	if err := CheckFabric(f, t, nil, nil); err != nil {
		return path, err
	}
	dest := f.LIDPort(lid)
	if dest == fabric.NoPort {
		return path, fmt.Errorf("no port has LID %d", lid)
	}
	at := src
	if !f.IsSwitch(f.Owner(src)) {
		if at = f.Peer(src); at == fabric.NoPort {
			return path, fmt.Errorf("%s has no cable", f.PortName(src))
		}
		path = append(path, src)
	}
	for range f.NumSwitches() {
		s := f.Owner(at)
		if !f.IsSwitch(s) {
			break
		}
		if dest == f.PortBase(s) && Entry(t.Row(s), lid) == fabric.ManagementPort {
			return path, nil
		}
		out, err := t.leave(f, s, lid)
		if err != nil {
			return path, err
		}
		path = append(path, out)
		at = f.Peer(out)
	}
	switch {
	case at == dest:
		return path, nil
	case f.IsSwitch(f.Owner(at)):
		return path, fmt.Errorf("the packet for LID %d loops at %s", lid, f.Name(f.Owner(at)))
	}
	return path, fmt.Errorf("the packet for LID %d comes to %s, which has another LID", lid, f.PortName(at))
}

// leave returns the port by which switch s sends a LID that is not its own.
func (t *Tables) leave(f *fabric.Fabric, s fabric.NodeID, lid fabric.LID) (fabric.PortID, error) {
	switch num := Entry(t.Row(s), lid); {
	case num == fabric.NoPath:
		return fabric.NoPort, fmt.Errorf("%s has no entry for LID %d", f.Name(s), lid)
	case num == fabric.ManagementPort:
		return fabric.NoPort, fmt.Errorf("%s takes LID %d for its own", f.Name(s), lid)
	case num > f.Node(s).NumPorts:
		return fabric.NoPort, fmt.Errorf("%s sends LID %d to port %d, which it does not have", f.Name(s), lid, num)
	}
	out := f.Port(s, Entry(t.Row(s), lid))
	if f.Peer(out) == fabric.NoPort {
		return fabric.NoPort, fmt.Errorf("%s sends LID %d to port %s, which has no cable", f.Name(s), lid, f.PortText(out))
	}
	return out, nil
}

// Hop is a channel on a path or in a credit loop.
type Hop struct {
	Switch fabric.GUID    `json:"switch"`
	Name   fabric.Name    `json:"name"`
	Port   fabric.PortNum `json:"port"`
	Label  string         `json:"label,omitempty"` // of the port, see fabric.Fabric.Label
	VL     fabric.VL      `json:"vl"`
	// LID is the destination of a packet that takes this channel, in a credit loop one that
	// goes on to the next channel of the loop.
	LID fabric.LID `json:"lid,omitempty"`
	// Choice is the reason why an adaptive switch uses the port, "static" or "group 3", and
	// the PLFT if there are several. It is empty for tables without choices.
	Choice string `json:"choice,omitempty"`
}

// HopOf returns the channel that leaves port p, without a VL and a LID.
func HopOf(f *fabric.Fabric, p fabric.PortID) Hop {
	n := f.Owner(p)
	return Hop{Switch: f.Node(n).GUID, Name: f.Name(n), Port: f.Num(p), Label: f.Label(p)}
}

// String returns "name"[port], with the port's label.
func (h Hop) String() string { return h.Name.At(h.Port, h.Label) }

// Target returns "LID 5" or "MLID 0xc001".
func (h Hop) Target() string {
	if h.LID > fabric.MaxUnicastLID {
		return fmt.Sprintf("MLID %#x", uint16(h.LID))
	}
	return fmt.Sprintf("LID %d", h.LID)
}
