package disk

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Rights with which a file can be changed, or made changeable.
const changes = windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | windows.WRITE_DAC | windows.WRITE_OWNER | windows.DELETE | windows.GENERIC_WRITE | windows.GENERIC_ALL

// trusted returns an error if anybody but the user, the system and its
// administrators may write f.
func trusted(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	friends, err := trustees()
	if err != nil {
		return err
	}
	sd, err := windows.GetSecurityInfo(windows.Handle(f.Fd()), windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return err
	}
	owner, _, err := sd.Owner()
	if err != nil {
		return err
	}
	if !friends.has(owner) {
		return fmt.Errorf("%v owns it, not the user or the system", owner)
	}
	dacl, _, err := sd.DACL()
	if err != nil {
		return err
	}
	if dacl == nil {
		return errors.New("it has no access list, so that everybody may write it")
	}
	for i := range uint32(dacl.AceCount) {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(dacl, i, &ace); err != nil {
			return err
		}
		if ace.Header.AceType == windows.ACCESS_DENIED_ACE_TYPE || ace.Header.AceFlags&windows.INHERIT_ONLY_ACE != 0 {
			continue
		}
		if ace.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE {
			return errors.New("its access list has an entry of a kind that is not understood")
		}
		if sid := (*windows.SID)(unsafe.Pointer(&ace.SidStart)); ace.Mask&changes != 0 && !friends.has(sid) {
			return fmt.Errorf("%v may write it", sid)
		}
	}
	return nil
}

type sids []*windows.SID

func (s sids) has(sid *windows.SID) bool {
	for _, f := range s {
		if f.Equals(sid) {
			return true
		}
	}
	return false
}

// trustees returns the user, the system and the administrators.
func trustees() (sids, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, err
	}
	out := sids{user.User.Sid}
	for _, t := range []windows.WELL_KNOWN_SID_TYPE{windows.WinLocalSystemSid, windows.WinBuiltinAdministratorsSid} {
		sid, err := windows.CreateWellKnownSid(t)
		if err != nil {
			return nil, err
		}
		out = append(out, sid)
	}
	return out, nil
}

// syncDir does nothing: Windows keeps renames in its journal and has no way to
// flush a directory.
func syncDir(string) error { return nil }
