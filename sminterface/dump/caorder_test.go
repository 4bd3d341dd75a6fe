package dump

import (
	"io"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// The order of the hosts has a line each, whatever their descriptions have in them.
func TestWriteCAOrder(t *testing.T) {
	var b fabric.Builder
	for i, n := range []fabric.Node{{GUID: 1, Type: fabric.Switch, NumPorts: 4}, {GUID: 2, Type: fabric.CA, NumPorts: 1, Description: "a\nb"}} {
		short.Must(b.AddNode(n))(t)
		short.Check(t, b.SetPort(i, fabric.PortNum(i), 0, fabric.LID(10+i), 0))
	}
	short.Check(t, b.Connect(0, 1, 1, 1, fabric.Link{}))
	f := short.Must(b.Build())(t)
	got := string(text(t, func(w io.Writer) error { return WriteCAOrder(w, f, []fabric.PortID{fabric.NoPort, f.CAPorts()[0]}) }))
	short.Equal(t, got, "0xFFFF\tDUMMY\n0x000b\ta b\n")
}
