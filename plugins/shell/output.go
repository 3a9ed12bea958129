package shell

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

const outputAbout = `Serves skill-output://{id}: all that a command has written, as far as it is kept.`

// maxResource is how much of an output a resource holds, bytes: the end of it.
const maxResource = 4 << 20

type outputArgs struct {
	ID string `json:"id"`
}

// output is the tool behind the resource skill-output://{id}. What it returns
// does not count as read by ReadBgOutput.
func (s *shell) output(c *guest.Call, in outputArgs) (sdk.Result, error) {
	n, err := strconv.ParseInt(in.ID, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != in.ID {
		return sdk.Result{}, noOutput(in.ID)
	}
	j, err := c.ReadJob(n, guest.JobRead{Cursor: new(int64), Max: minRead})
	if err != nil {
		return sdk.Result{}, noTask(taskID(n), err)
	}
	end := j.Bytes
	at := max(end-maxResource, 0)
	omitted := at
	var data []byte
	for at < end {
		if j, err = c.ReadJob(n, guest.JobRead{Cursor: &at, Max: int(min(max(end-at, minRead), maxRead))}); err != nil {
			return sdk.Result{}, noTask(taskID(n), err)
		}
		omitted += j.Dropped
		if len(j.Data) == 0 { // the unfinished line of a task that runs
			break
		}
		data = append(data, j.Data...)
		at = j.Next
	}
	uri := "skill-output://" + in.ID
	if isBinary(data) {
		return sdk.Result{Content: []sdk.Content{guest.Blob(uri, "application/octet-stream", data)}}, nil
	}
	note := ""
	if omitted > 0 {
		if i := bytes.IndexByte(data, '\n'); i >= 0 && i+1 < len(data) {
			data, omitted = data[i+1:], omitted+int64(i)+1
		}
		note = fmt.Sprintf("[… %d bytes before this are left out]\n", omitted)
	}
	return sdk.Result{Content: []sdk.Content{guest.Document(uri, "text/plain", note+strings.ToValidUTF8(string(data), "\ufffd"))}}, nil
}

func noOutput(id string) error {
	return &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("no output %.40q", id), Hint: "ListBgTasks lists the background tasks"}
}
