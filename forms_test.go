package ibweave_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibweave/ibweave"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
	"github.com/ibweave/ibweave/verify"
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

// TestSARIFLines breaks an entry of the last switch, and wants the finding at its line.
func TestSARIFLines(t *testing.T) {
	text, err := os.ReadFile(dumped)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndex(text, []byte("Unicast lids"))
	entry := last + bytes.Index(text[last:], []byte("0x0002 "))
	copy(text[entry:], "0x0002 255")
	tables := filepath.Join(t.TempDir(), "tables")
	if err := os.WriteFile(tables, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := ibweave.OpenFiles(t.Context(), ibweave.Files{Topology: list, LFTs: tables})
	if err != nil {
		t.Fatal(err)
	}
	r, err := ibweave.Verify(t.Context(), s, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := ibweave.WriteSARIF(&out, s, r); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Runs []struct {
			Results []struct {
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	want, found := 1+bytes.Count(text[:last], []byte("\n")), false
	for _, x := range log.Runs[0].Results {
		at := x.Locations[0].PhysicalLocation
		found = found || strings.HasSuffix(at.ArtifactLocation.URI, tables) && at.Region.StartLine == want
	}
	if !found {
		t.Errorf("no finding at line %d of the tables: %+v", want, log.Runs[0].Results)
	}
}
