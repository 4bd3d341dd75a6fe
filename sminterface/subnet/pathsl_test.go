package subnet

import (
	"errors"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// The paths of a port are asked for at once where the answer fits into what
// libumad2sim.so lets through, which is three records, else one by one. All pairs of ports
// have an SL.
func TestPathSLs(t *testing.T) {
	for _, c := range []struct{ hosts, least, most int }{
		{2, 3, 3},           // a switch and two hosts: three records for each
		{3, 4*3 + 1, 4 * 4}, // four for each: what is cut off is asked for by itself
	} {
		f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{1}, Hosts: c.hosts}))(t)
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
		s, twin := ibsimtest.Start(t, f)
		client := dial(t, s, "")
		openSM(t, s, ibsim.OpenSMConfig{})
		sm := short.Must(client.Manager(t.Context()))(t)
		sls, requests := short.Must2(client.PathSLs(t.Context(), sm, twin.Fabric, 1))(t)
		if requests < c.least || requests > c.most {
			t.Errorf("%d hosts: %d requests, want %d to %d", c.hosts, requests, c.least, c.most)
		}
		if len(sls.Ports()) > 0 {
			t.Errorf("%d hosts: ports %v have rows of their own", c.hosts, sls.Ports())
		}
		for l := fabric.LID(1); l <= twin.Fabric.MaxLID(); l++ {
			short.Equal(t, sls.Given(0)[l], 0, c.hosts, "hosts: SL", "to LID", l)
		}
		// There is no such port, and so no record.
		want := mad.PathRecord{SLID: 1, DLID: 1000, NumPath: 1}
		list, err := askRecords[mad.PathRecord](t.Context(), client, sm, mad.PathRecordSize, &mad.Adm{
			Header:        mad.Header{Method: mad.Get, Attribute: mad.AttrPathRecord},
			ComponentMask: mad.PathSLID | mad.PathDLID | mad.PathNumPath, Data: want.Append(nil),
		})
		if status := new(mad.StatusError); len(list) > 0 || err != nil && !errors.As(err, &status) {
			t.Errorf("%d paths to nowhere, %v", len(list), err)
		}
	}
}
