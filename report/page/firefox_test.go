package page

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ibweave/ibweave/internal/short"
)

// firefox is a headless Firefox that is driven by its own protocol, Marionette: a length, a
// colon, and a JSON list of type, number, error and result, or of type, number, command and
// parameters.
type firefox struct {
	*testing.T
	conn net.Conn
	from *bufio.Reader
	sent int
}

// startFirefox starts one without a network. It ends with the test.
func startFirefox(t *testing.T) *firefox {
	t.Helper()
	short.NeedAll(t)
	program, err := exec.LookPath("firefox-esr")
	if err != nil {
		t.Fatal("no Firefox; install it with apt-get install firefox-esr, or run scripts/install-tools.sh")
	}
	home := t.TempDir()
	profile := filepath.Join(home, "profile")
	short.Check(t, os.Mkdir(profile, 0o700))
	const prefs = `user_pref("marionette.port", 0);
user_pref("network.proxy.type", 1);
user_pref("network.proxy.http", "127.0.0.1");
user_pref("network.proxy.http_port", 9);
user_pref("network.proxy.ssl", "127.0.0.1");
user_pref("network.proxy.ssl_port", 9);
`
	short.Check(t, os.WriteFile(filepath.Join(profile, "user.js"), []byte(prefs), 0o600))
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "--headless", "--no-remote", "--marionette", "--profile", profile)
	cmd.Env = append(os.Environ(), "HOME="+home, "MOZ_CRASHREPORTER_DISABLE=1")
	cmd.WaitDelay = 10 * time.Second
	short.Check(t, cmd.Start())
	b := &firefox{T: t}
	t.Cleanup(func() {
		if b.conn != nil {
			b.call("Marionette:Quit", map[string]any{"flags": []string{"eForceQuit"}})
			b.conn.Close()
			time.AfterFunc(10*time.Second, stop)
		} else {
			stop()
		}
		_ = cmd.Wait() // it was told to end
		stop()
	})
	port := ""
	short.Await(t, func() bool {
		data, _ := os.ReadFile(filepath.Join(profile, "MarionetteActivePort"))
		port = strings.TrimSpace(string(data))
		return port != ""
	}, "Firefox opens no port")
	conn := short.Must(net.Dial("tcp", net.JoinHostPort("127.0.0.1", port)))(t)
	b.conn, b.from = conn, bufio.NewReader(conn)
	b.read() // it says who it is
	b.call("WebDriver:NewSession", map[string]any{})
	return b
}

// read reads a message.
func (b *firefox) read() []byte {
	b.Helper()
	length := short.Must(b.from.ReadString(':'))(b)
	n := short.Must(strconv.Atoi(strings.TrimSuffix(length, ":")))(b)
	data := make([]byte, n)
	short.Must(io.ReadFull(b.from, data))(b)
	return data
}

// call gives what a command gives.
func (b *firefox) call(command string, params map[string]any) json.RawMessage {
	b.Helper()
	b.sent++
	text := short.Must(json.Marshal([]any{0, b.sent, command, params}))(b)
	short.Must(fmt.Fprintf(b.conn, "%d:%s", len(text), text))(b)
	var reply []json.RawMessage
	if data := b.read(); json.Unmarshal(data, &reply) != nil || len(reply) != 4 || string(reply[2]) != "null" {
		b.Fatalf("%s: %s", command, data)
	}
	return reply[3]
}

// open opens a file with a fragment of its address.
func (b *firefox) open(name, fragment string) {
	b.Helper()
	b.call("WebDriver:Navigate", map[string]any{"url": (&url.URL{Scheme: "file", Path: name}).String() + fragment})
}

// ask is what JavaScript says.
func ask[T any](b *firefox, expression string) (value T) {
	b.Helper()
	// Where a wall keeps scripts of Marionette from what the page defines, this is the door.
	script := "const ibweave = (window.wrappedJSObject || window).ibweave; return JSON.stringify(" + expression + ")"
	var text struct{ Value string }
	data := b.call("WebDriver:ExecuteScript", map[string]any{"script": script, "args": []string{}})
	if err := json.Unmarshal(data, &text); err != nil {
		b.Fatalf("%s: %v", data, err)
	}
	if err := json.Unmarshal([]byte(text.Value), &value); err != nil {
		b.Fatalf("%s: %v", text.Value, err)
	}
	return value
}
