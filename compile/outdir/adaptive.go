package outdir

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft/adaptive"
)

// adaptiveSwitch is the choices of a switch in the JSON form. LIDs without a group have their
// static port alone.
type adaptiveSwitch struct {
	Switch fabric.GUID     `json:"switch"`
	Name   fabric.Name     `json:"name"`
	Groups []adaptiveGroup `json:"groups"`
}

type adaptiveGroup struct {
	Group int             `json:"group"`
	Ports []int           `json:"ports"`
	LIDs  [][2]fabric.LID `json:"lids"` // from the first to the last of each range
}

// writeAdaptive writes the groups of each switch and the LIDs that use them, as JSON with a line
// for each switch. It takes tables as adaptive.Widen makes them.
func writeAdaptive(w io.Writer, f *fabric.Fabric, t *adaptive.Tables, only []fabric.NodeID) error {
	b := bufio.NewWriter(w)
	b.WriteString(`{"switches": [`)
	separator := "\n"
	for _, s := range f.Switches() {
		if only != nil && !slices.Contains(only, s) {
			continue
		}
		n := f.Node(s)
		x := adaptiveSwitch{Switch: n.GUID, Name: f.Name(s), Groups: make([]adaptiveGroup, len(t.Groups[s]))}
		for i := range x.Groups {
			g := &x.Groups[i]
			g.Group = t.Groups[s][i].Number
			set := t.Groups[s][i].Ports()
			set.Each(func(p fabric.PortNum) { g.Ports = append(g.Ports, int(p)) })
		}
		for l := range t.PLFTs[0].Row(s) {
			lid := fabric.LID(l)
			_, i := t.PLFTs[0].At(s, lid)
			if i < 0 {
				continue
			}
			g := &x.Groups[i]
			if last := len(g.LIDs) - 1; last >= 0 && g.LIDs[last][1] == lid-1 {
				g.LIDs[last][1] = lid
			} else {
				g.LIDs = append(g.LIDs, [2]fabric.LID{lid, lid})
			}
		}
		text, err := json.Marshal(x)
		if err != nil {
			return err
		}
		b.WriteString(separator)
		b.Write(text)
		separator = ",\n"
	}
	b.WriteString("\n]}\n")
	return b.Flush()
}
