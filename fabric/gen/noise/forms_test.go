package noise_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
)

// forms are the text forms of a fabric: how each is written and read, and what of a
// fabric it holds.
var forms = []struct {
	name  string
	write func(*bytes.Buffer, *fabric.Fabric) error
	// read returns the fabric and how many problems the reader found.
	read func([]byte) (*fabric.Fabric, int, error)
	held func(*fabric.Fabric) []byte
}{
	{
		"ibnetdiscover",
		func(b *bytes.Buffer, f *fabric.Fabric) error { return topology.Write(b, f) },
		readTopology, unlabelled,
	},
	{
		"ibnetdiscover with labels",
		func(b *bytes.Buffer, f *fabric.Fabric) error { return topology.WriteLabelled(b, f) },
		readTopology, labelled,
	},
	{
		"db_csv",
		func(b *bytes.Buffer, f *fabric.Fabric) error { return ibdiagnet.Write(b, f, ibdiagnet.WriteOptions{}) },
		func(data []byte) (*fabric.Fabric, int, error) {
			d, err := ibdiagnet.Read("in", bytes.NewReader(data), ibdiagnet.Options{Strict: true})
			if err != nil {
				return nil, 0, err
			}
			return d.Fabric, len(d.Problems), nil
		},
		labelled,
	},
	{
		"subnet list",
		func(b *bytes.Buffer, f *fabric.Fabric) error {
			return dump.WriteSubnetList(b, f, dump.SubnetListOptions{})
		},
		func(data []byte) (*fabric.Fabric, int, error) {
			f, problems, err := dump.ReadSubnetList("in", data, dump.Options{})
			return f, len(problems), err
		},
		// OpenSM prints ?? for 2x.
		func(f *fabric.Fabric) []byte {
			return bytes.ReplaceAll(unlabelled(withoutLMC(f)), []byte(" 2x"), []byte(" ??"))
		},
	},
}

func readTopology(data []byte) (*fabric.Fabric, int, error) {
	f, problems, err := topology.Parse("in", data, topology.Options{Strict: true})
	return f, len(problems), err
}

func labelled(f *fabric.Fabric) []byte   { return topology.AppendLabelled(nil, f) }
func unlabelled(f *fabric.Fabric) []byte { return topology.Append(nil, f) }

// withoutLMC is f with one LID for each port.
func withoutLMC(f *fabric.Fabric) *fabric.Fabric {
	lids := make([]fabric.LID, f.NumPorts())
	for p := range lids {
		lids[p] = f.LID(fabric.PortID(p))
	}
	g, err := f.WithLIDs(lids, make([]uint8, len(lids)))
	if err != nil {
		panic(err) // fewer LIDs than f has cannot overlap
	}
	return g
}

// Any fabric of the generators is read back from each form as what the form holds of it,
// without a finding, and twice the same bytes are written.
func TestForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := generated(t)
		for _, form := range forms {
			var text, again bytes.Buffer
			if err := form.write(&text, f); err != nil {
				t.Fatal(err)
			}
			g, problems, err := form.read(text.Bytes())
			if err != nil || problems > 0 {
				t.Fatalf("%s: %d problems, %v\n%s", form.name, problems, err, &text)
			}
			if diff := cmp.Diff(string(form.held(f)), string(form.held(g))); diff != "" {
				t.Fatalf("%s (-want +got):\n%s\n%s", form.name, diff, &text)
			}
			if err := form.write(&again, f); err != nil || !bytes.Equal(text.Bytes(), again.Bytes()) {
				t.Fatalf("%s: written again it is not the same (%v)", form.name, err)
			}
		}
	})
}
