package dump

import (
	"fmt"
	"io"

	"github.com/ibweave/ibweave/fabric"
)

// WriteCAOrder writes opensm-ftree-ca-order.dump as OpenSM's ftree does
// (osm_ucast_ftree.c): a line has the base LID and node description of a CA
// port, or DUMMY for fabric.NoPort, a place without a host. MPI ranks in
// this order run shift permutations without contention on a full fat tree.
func WriteCAOrder(w io.Writer, f *fabric.Fabric, order []fabric.PortID) error {
	var b []byte
	for _, p := range order {
		if p == fabric.NoPort {
			b = append(b, "0xFFFF\tDUMMY\n"...)
			continue
		}
		b = fmt.Appendf(b, "0x%04x\t", f.LID(p))
		b = appendDescription(b, f.Node(f.Owner(p)).Description)
		b = append(b, '\n')
	}
	_, err := w.Write(b)
	return err
}
