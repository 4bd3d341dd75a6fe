package page

import (
	"fmt"

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
// hops as there are switches and one more.
func (in *Input) Path(src fabric.PortID, lid fabric.LID) Path {
	f := in.Fabric
	var path Path
	if first := f.PeerSwitch(src); in.PathSLs != nil && first != fabric.NoNode {
		path.SL = in.PathSLs.SL(src, first, lid)
	}
	outs, err := in.Tables.Path(f, src, lid, nil)
	inPort := fabric.PortNum(0)
	for _, out := range outs {
		vl := fabric.VL(0)
		if in.SL2VL != nil {
			vl = in.SL2VL.At(inPort, out)[path.SL]
		}
		if vl == lft.DropVL {
			path.Lost = fmt.Sprintf("the SL-to-VL table of %s drops SL %d", f.PortName(out), path.SL)
			return path
		}
		path.Hops = append(path.Hops, Channel{out, vl})
		inPort = f.Num(f.Peer(out))
	}
	if err != nil {
		path.Lost = err.Error()
	}
	return path
}
