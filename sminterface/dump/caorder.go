package dump

import (
	"bufio"
	"fmt"
	"io"

	"github.com/ibweave/ibweave/fabric"
)

// WriteCAOrder writes opensm-ftree-ca-order.dump as OpenSM's ftree does
// (osm_ucast_ftree.c): base LID and node description of a CA port a line, and for
// fabric.NoPort a place without a host. MPI ranks that are given out in this order have
// shift permutations without contention on a full fat tree.
func WriteCAOrder(w io.Writer, f *fabric.Fabric, order []fabric.PortID) error {
	b := bufio.NewWriter(w)
	for _, p := range order {
		if p == fabric.NoPort {
			fmt.Fprintf(b, "0xFFFF\tDUMMY\n")
			continue
		}
		fmt.Fprintf(b, "0x%04x\t%s\n", f.LID(p), f.Node(f.Owner(p)).Description)
	}
	return b.Flush()
}
