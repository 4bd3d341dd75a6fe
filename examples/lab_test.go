package examples

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

// TestLabNames: lab.sh takes names of nodes literally. A shell stands in for OpenSM, and a file for the
// console of ibsim.
func TestLabNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := short.Must(os.ReadFile("lab/lab.sh"))(t)
	short.Check(t, os.Mkdir(filepath.Join(dir, "lab"), 0o777))
	for name, text := range map[string]string{
		"lab.sh": string(script), "env": "",
		"fabric": `Switch	8 "S-0000000000000001"		# "MF0;leaf-1:MQM8700/U1" enhanced port 0 lid 1 lmc 0
[1]	"H-0000000000000003"[1](4)		# "a.b" lid 2 4xHDR
Switch	8 "S-0000000000000002"		# "a&b\n/[c]*" enhanced port 0 lid 0 lmc 0
Ca	1 "H-0000000000000005"		# "axb"
Ca	1 "H-0000000000000003"		# "a.b"
`,
	} {
		short.Check(t, os.WriteFile(filepath.Join(dir, "lab", name), []byte(text), 0o666))
	}
	const opensm = `sh -c 'trap "echo SUBNET UP >>lab/opensm.log" HUP; echo SUBNET UP >>lab/opensm.log; while [ -e lab/fabric ]; do sleep 0.05; done' >lab/out 2>&1 &
echo $! >lab/opensm.pid
until [ -e lab/opensm.log ]; do sleep 0.05; done`
	if out, status := runIn(t, os.Environ(), dir, "sh", "-c", opensm); status != 0 {
		t.Fatal(out)
	}
	t.Cleanup(func() { os.Remove(filepath.Join(dir, "lab", "fabric")) }) // ends it
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"unplug", "MF0;leaf-1:MQM8700/U1", "1"}, "Unlink \"S-0000000000000001\"[1]\n"},
		{[]string{"plug", "MF0;leaf-1:MQM8700/U1", "1"}, "ReLink \"S-0000000000000001\"[1]\n"},
		{[]string{"unplug", "a.b"}, "Unlink \"H-0000000000000003\"\n"},
		{[]string{"unplug", `a&b\n/[c]*`}, "Unlink \"S-0000000000000002\"\n"},
	} {
		if out, status := runIn(t, os.Environ(), dir, append([]string{"sh", "lab/lab.sh"}, c.args...)...); status != 0 {
			t.Errorf("%q: %s", c.args, out)
		}
		short.Equal(t, string(short.Must(os.ReadFile(filepath.Join(dir, "lab", "console")))(t)), c.want, c.args, "ibsim is told")
	}
	if out, status := runIn(t, os.Environ(), dir, "sh", "lab/lab.sh", "unplug", "a.*"); status == 0 {
		t.Errorf("a node a.*: %s", out)
	}
}
