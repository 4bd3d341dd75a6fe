package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

// The module of own-scheme builds outside of ours with its replace line alone. What its engine, its
// scheme and its script in Python make is proven, loaded by OpenSM on ibsim, simulated, and
// stands beside our engines.
func TestOwnScheme(t *testing.T) {
	short.NeedPrograms(t)
	work := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(work, "own-scheme"), ".")
	build.Dir = "own-scheme"
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script := short.Must(filepath.Abs("own-scheme/masks.py"))(t)
	const python = " -t own/fabric.ibnetdiscover --lfts own/opensm-lfts.dump --mfts masks.mcfdbs -g own/groups.json"
	for _, tt := range []struct{ command, want string }{
		{"ibweave gen irregular --switches 12 --degree 4 --hosts 12 --seed 1 -o net.txt", "12 switches"},
		{"./own-scheme net.txt unicast", "11 files, verdict warnings"},
		{"ibweave check unicast", "132 pairs of a CA port and a LID: 0 unreachable, 0 looping"},
		{"ibweave check unicast", "certificate  unicast/certificate.txt holds"},
		{"ibweave compare -t net.txt -e updn --lfts unicast --bisections 20", "updn   unicast"},
		{"./own-scheme net.txt own 0x100001 0x100003 0x100007", "14 files, verdict warnings"},
		{"ibweave check own", "6 pairs of a sender and a receiver: 0 missing, 0 duplicate; 0 senders looping, 0 stray"},
		{"ibweave sim own -g own/groups.json --multicast 1 --burst 1", " done"},
		{"python3 " + script + " own/fabric.ibnetdiscover 0xc001 0x100001 0x100003 0x100007 >masks.mcfdbs", ""},
		{"ibweave check" + python, "6 pairs of a sender and a receiver: 0 missing, 0 duplicate; 0 senders looping, 0 stray"},
		{"ibweave sim" + python + " --multicast 1 --burst 1", " done"},
		{"ibweave rehearse unicast", "verdict      equal"},
	} {
		if out, status := runShell(t, work, "-c", tt.command); status != 0 || !strings.Contains(out, tt.want) {
			t.Errorf("exit status %d of %s, want 0 and %q\n%s", status, tt.command, tt.want, out)
		}
	}
	// A port that is no member's and one member less are found.
	if out, status := runShell(t, work, "-c", "sed -i 's/ 0x005 $/ /' masks.mcfdbs && ibweave check"+python); status != 1 || !strings.Contains(out, "6 missing") {
		t.Errorf("masks without the members' ports: exit status %d\n%s", status, out)
	}
}
