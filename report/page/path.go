package page

import (
	"fmt"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// Path is the way of a packet by the tables.
type Path struct {
	SL fabric.SL
	// Hops are the channels that the packet takes, the one out of the source port
	// first.
	Hops []Channel
	// Lost is why the packet does not arrive, "" when it does.
	Lost string
}

// Channel is a virtual lane of a cable in one direction.
type Channel struct {
	Out fabric.PortID // the port that it leaves
	VL  fabric.VL
}

// Path follows a packet from a CA or router port to a LID. It takes at most as many
// hops as there are switches and two more.
func (in *Input) Path(src fabric.PortID, lid fabric.LID) Path {
	f := in.Fabric
	var path Path
	if f.Peer(src) == fabric.NoPort {
		path.Lost = f.PortName(src) + " has no cable"
		return path
	}
	if first := f.Owner(f.Peer(src)); in.PathSLs != nil && f.IsSwitch(first) {
		path.SL = in.PathSLs.SL(src, first, lid)
	}
	// take goes on by a port, unless the SL-to-VL table drops the packet.
	take := func(inPort fabric.PortNum, out fabric.PortID) bool {
		vl := fabric.VL(0)
		if in.SL2VL != nil {
			vl = in.SL2VL.At(inPort, out)[path.SL]
		}
		if vl == lft.DropVL {
			path.Lost = fmt.Sprintf("the SL-to-VL table of %s drops SL %d", f.PortName(out), path.SL)
			return false
		}
		path.Hops = append(path.Hops, Channel{out, vl})
		return true
	}
	if !take(0, src) {
		return path
	}
	at := f.Peer(src)
	for f.IsSwitch(f.Owner(at)) {
		s := f.Owner(at)
		name := f.Name(s)
		if len(path.Hops) > f.NumSwitches()+1 {
			path.Lost = "it goes round in a circle"
			return path
		}
		num := in.Tables.Row(s)[lid]
		switch {
		case num == fabric.NoPath:
			path.Lost = fmt.Sprintf("%s has no entry for LID %d", name, lid)
			return path
		case num == fabric.ManagementPort:
			if f.LIDPort(lid) != f.Port(s, 0) {
				path.Lost = fmt.Sprintf("%s keeps it for itself", name)
			}
			return path
		case num > f.Node(s).NumPorts || f.Peer(f.Port(s, num)) == fabric.NoPort:
			to := strconv.Itoa(int(num))
			if num <= f.Node(s).NumPorts {
				to = f.PortText(f.Port(s, num))
			}
			path.Lost = fmt.Sprintf("%s sends it to port %s, where no cable is", name, to)
			return path
		}
		out := f.Port(s, num)
		if !take(f.Num(at), out) {
			return path
		}
		at = f.Peer(out)
	}
	if f.LIDPort(lid) != at {
		path.Lost = "it arrives at " + f.PortName(at) + ", which has another LID"
	}
	return path
}
