package ibweave_test

import (
	"bytes"
	"testing"

	"github.com/ibweave/ibweave"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
)

// All forms of a topology give the same fabric.
func TestParseFabric(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2})
	if err != nil {
		t.Fatal(err)
	}
	var list, database bytes.Buffer
	if err := dump.WriteSubnetList(&list, f); err != nil {
		t.Fatal(err)
	}
	if err := ibdiagnet.Write(&database, f); err != nil {
		t.Fatal(err)
	}
	for form, text := range map[string][]byte{
		"ibnetdiscover": topology.Append(nil, f), "subnet list": list.Bytes(), "db_csv": database.Bytes(),
	} {
		g, err := ibweave.ParseFabric(form, text)
		if err != nil || !fabric.SameTopology(f, g) {
			t.Errorf("%s: %v", form, err)
		}
	}
	if _, err := ibweave.ParseFabric("broken", bytes.Replace(database.Bytes(), []byte("_LINKS"), []byte("_LYNX"), 2)); err == nil {
		t.Error("a db_csv without cables is read")
	}
}
