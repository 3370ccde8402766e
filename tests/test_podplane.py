"""The OpenTofu lines of docs/podplane.md: a parser of HCL reads them, and their names are those of the commands on the page. `vmbake publish` writes the
parameter that they read, to a stand-in for AWS, from where boto3 reads it."""

import re
import shlex

import hcl2
import pytest
from lark.exceptions import LarkError

from harness.aws import disk, lab
from harness.paths import ROOT

PAGE = (ROOT / "docs/podplane.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def lines():
    """The only block of HCL, as it is parsed."""
    [text] = blocks("hcl")
    return hcl2.loads(text)


def plain(value):
    """A string without its quotes, or the expression of `${…}`."""
    return value.strip('"').removeprefix("${").removesuffix("}")


def data(parsed):
    """The data sources: (type, name) -> attributes."""
    return {(plain(kind), plain(name)): body for block in parsed["data"] for kind, named in block.items() for name, body in named.items()}


def published():
    """The words of the command of the page that publishes with a parameter."""
    commands = [line for text in blocks("sh") for line in text.splitlines() if "--ssm-parameter" in line]
    [command] = [shlex.split(line) for line in commands]
    assert command[:3] == ["vmbake", "publish", "aws"]
    return command


def test_lines_are_hcl():
    parsed = lines()
    assert {name for name in parsed if not name.startswith("__")} == {"data", "userdata", "args"}
    [(source, body)] = data(parsed).items()
    command = published()
    assert source[0] == "aws_ssm_parameter" and plain(body["name"]) == command[command.index("--ssm-parameter") + 1]
    # What the template refers to is declared.
    assert {plain(name): plain(value) for name, value in parsed["args"].items()} == {"ImageId": f"data.{'.'.join(source)}.insecure_value"}
    # The user data are the file that the page renders.
    [rendered] = re.findall(r"vmbake user-data render .* --template nstance .*> (\S+)$", PAGE, re.MULTILINE)
    userdata = {plain(name): plain(value) for name, value in parsed["userdata"].items()}
    assert (userdata["source"], userdata["encoding"]) == ("inline", "base64")
    assert re.fullmatch(r'filebase64\("\$\{path\.module\}/(.*)"\)', userdata["content"]).group(1) == rendered


def test_other_lines_are_not():
    [text] = blocks("hcl")
    for broken in (text.replace("{ name", "name"), text.replace('"knc_arm64"', '"knc_arm64'), text.replace("args = {", "args =")):
        assert broken != text
        with pytest.raises(LarkError):
            hcl2.loads(broken)


@pytest.mark.needs(*disk.TOOLS)
def test_publish_writes_the_parameter(vmbake, tmp_path):
    service = lab.Service()
    try:
        # The image of the page, with another disk.
        image = tmp_path / "knc.debian-13.arm64.raw"
        disk.make(image, 1, disk.payload("a", "b", "c", "d"))
        words = published()[3:]
        assert words[0] == f"dist/{image.name}"
        done = lab.Program(vmbake, service, tmp_path).run(image, *words[1:])
        assert done.code == 0, done
        [body] = data(lines()).values()
        value = service.client("ssm").get_parameter(Name=plain(body["name"]))["Parameter"]
        # The provider has no `insecure_value` for a SecureString.
        assert (value["Value"], value["Type"], value["DataType"]) == (done.json["image_id"], "String", "aws:ec2:image")
        [found] = service.client("ec2").describe_images(ImageIds=[value["Value"]])["Images"]
        assert found["ImageId"] == done.json["image_id"]
    finally:
        service.stop()
